package host

import (
	"strings"

	"golang.org/x/sys/unix"
)

// text parses a string attribute up to its NUL.
func text(b []byte) string { return unix.ByteSliceToString(b) }

func readText(files Files, dir, name string) (string, error) {
	b, err := files.ReadIn(dir, name, nil)
	return strings.TrimSpace(string(b)), err
}
