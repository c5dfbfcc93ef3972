package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile limits the size of an archive.
const maxFile = 512 << 20

// maxBases limits the depth of bases, which may be variants themselves.
const maxBases = 8

// Load reads an archive file. A variant is returned whole: its base is NAME.txtar in the same directory, or what
// builtin returns for the name (nil: none). The error names the file at fault unless it is this one.
func Load(file string, builtin func(name string) []byte) (*Archive, error) {
	return load(file, builtin, maxBases)
}

func load(file string, builtin func(name string) []byte, bases int) (*Archive, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	a, err := Parse(text)
	if err != nil || !a.IsVariant() {
		return a, err
	}
	if bases == 0 {
		return nil, fmt.Errorf("base %q: more than %d nested variants, or a cycle: the last base has to be a whole capture",
			a.Meta.Base, maxBases)
	}
	base, err := loadBase(filepath.Join(filepath.Dir(file), a.Meta.Base+".txtar"), a.Meta.Base, builtin, bases)
	if err != nil {
		return nil, err
	}
	return a.On(base)
}

func loadBase(file, name string, builtin func(name string) []byte, bases int) (*Archive, error) {
	a, err := load(file, builtin, bases-1)
	switch {
	case err == nil:
		return a, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("base %q: %w", name, err)
	}
	if text := builtin(name); text != nil {
		return Parse(text)
	}
	return nil, fmt.Errorf("base %q: %s not found in the directory of the variant: copy it there, or use the whole capture", name, filepath.Base(file))
}

func readFile(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, fmt.Errorf("not a regular file of at most %d MiB", maxFile>>20)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	return b, nil
}
