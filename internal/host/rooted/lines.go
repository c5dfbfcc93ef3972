package rooted

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// Lines reads the file in pieces, so that its length does not matter. Lines longer than the buffer are ignored.
func (t *Tree) Lines(p string, words []string) ([]byte, error) {
	fd, err := t.Open(p, 0)
	if err != nil {
		return nil, &access.Error{Op: "read", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var out []byte
	for r := bufio.NewReaderSize(descriptor(fd), 64<<10); ; {
		line, err := r.ReadSlice('\n')
		if slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(line, []byte(w)) }) &&
			len(out)+len(line) <= host.MaxFile {
			out = append(out, line...)
		}
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, &access.Error{Op: "read", Path: p, Err: err}
		}
	}
}

// Head reads the beginning of a file. Files of debugfs are generated while they are read.
func (t *Tree) Head(p string, size int) (content []byte, whole bool, err error) {
	fd, err := t.Open(p, 0)
	if err != nil {
		return nil, false, &access.Error{Op: "read", Path: p, Err: err}
	}
	defer unix.Close(fd)
	content = make([]byte, size+1)
	n, err := io.ReadFull(descriptor(fd), content)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, false, &access.Error{Op: "read", Path: p, Err: err}
	}
	return content[:min(n, size)], n <= size, nil
}

// descriptor reads from the current offset.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
