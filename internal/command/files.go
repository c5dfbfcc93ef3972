package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Unfinished is the prefix of files that are being written.
const Unfinished = ".rdma_exporter-capture-"

// WriteFile replaces a file atomically.
func WriteFile(name string, b []byte, stdout io.Writer) (err error) {
	if name == "-" {
		_, err := stdout.Write(b)
		return err
	}
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0) // a pipe or a device
		if err != nil {
			return errors.Unwrap(err)
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), Unfinished)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// File is a file of the binary.
type File struct {
	Name string // without folder
	Text []byte
}

// ReadEmbedded reads files of the binary.
func ReadEmbedded(fsys fs.FS, names []string) (files []File, err error) {
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read embedded file: %w", err)
		}
		files = append(files, File{path.Base(name), text})
	}
	return files, nil
}

// WriteFiles writes files to a directory, which is created if missing. Without force it writes nothing if one exists
// with other content.
func WriteFiles(dir string, force bool, files []File) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return errors.Unwrap(err)
	}
	var changed []File
	var differ []string
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(dir, f.Name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			changed = append(changed, f)
		case err != nil:
			return fmt.Errorf("%s: %w", f.Name, errors.Unwrap(err))
		case !bytes.Equal(old, f.Text):
			changed, differ = append(changed, f), append(differ, f.Name)
		}
	}
	if len(differ) > 0 && !force {
		return fmt.Errorf("%s: exists with other content: --force overwrites it", strings.Join(differ, ", "))
	}
	for _, f := range changed {
		if err := WriteFile(filepath.Join(dir, f.Name), f.Text, nil); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// ReadSmall reads a regular file, or the beginning of a large one.
func ReadSmall(name string, most int64) ([]byte, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("must be a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}
