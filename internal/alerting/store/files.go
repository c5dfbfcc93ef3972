package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// errBlocked is in the error of a store with something in it that cannot be opened, or not without waiting. The store
// stays as it is.
var errBlocked = errors.New("store not touched")

// onlyFiles returns errBlocked if a store has anything but directories and regular files that can be opened. The
// library opens whatever has the right name, and an open of a FIFO waits for its writer.
func onlyFiles(dir string) error {
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		path := filepath.Join(dir, name)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%w: make it readable for the user of the program", err)
		case err != nil || e.IsDir():
			return err
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is a %s, not a regular file: remove it", path, kindOf(e.Type()))
		}
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return fmt.Errorf("%w: make it readable for the user of the program", err)
		}
		return f.Close()
	})
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // hasSpace creates the directory, or returns why it cannot
	}
	return fmt.Errorf("%w: %w", errBlocked, err)
}

// kindOf names the type of a file that is not regular.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}
