package rooted

import (
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
)

// Text parses a string attribute up to its NUL.
func Text(b []byte) string { return unix.ByteSliceToString(b) }

// ReadText reads a file without the space around its text.
func ReadText(files host.Files, dir, name string) (string, error) {
	b, err := files.ReadIn(dir, name, nil)
	return strings.TrimSpace(string(b)), err
}
