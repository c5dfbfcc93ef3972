package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// embedded is a file of the binary.
type embedded struct {
	name string // without folder
	text []byte
}

func readEmbedded(fsys fs.FS, names []string) (files []embedded, err error) {
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read embedded file: %w", err)
		}
		files = append(files, embedded{path.Base(name), text})
	}
	return files, nil
}

// writeEmbedded writes files to a directory, which is created if missing. Without force it writes nothing if one exists with other content.
func writeEmbedded(dir string, force bool, files []embedded) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return errors.Unwrap(err)
	}
	var changed []embedded
	var differ []string
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(dir, f.name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			changed = append(changed, f)
		case err != nil:
			return fmt.Errorf("%s: %w", f.name, errors.Unwrap(err))
		case !bytes.Equal(old, f.text):
			changed, differ = append(changed, f), append(differ, f.name)
		}
	}
	if len(differ) > 0 && !force {
		return fmt.Errorf("%s: exists with other content: --force overwrites it", strings.Join(differ, ", "))
	}
	for _, f := range changed {
		if err := write(filepath.Join(dir, f.name), f.text, nil); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}
