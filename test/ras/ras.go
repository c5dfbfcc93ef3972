// Package ras is a RAS service of NCCL for tests.
package ras

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Service starts a RAS service of NCCL 2.30 with an answer of internal/nccl/testdata, whose first host is this one. The
// test is of a package two directories below the root.
func Service(t *testing.T, file string) (address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../internal/nccl/testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return Answering(t, strings.ReplaceAll(string(text), "10.0.0.11", "127.0.0.1"))
}

// Answering starts one with an answer. One in text is that of a version without SET FORMAT.
func Answering(t *testing.T, answer string) (address string) {
	t.Helper()
	isJSON := strings.HasPrefix(answer, "{")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					switch line := lines.Text(); {
					case strings.HasPrefix(line, "CLIENT"):
						fmt.Fprintln(c, "SERVER PROTOCOL 2")
					case strings.HasSuffix(line, "STATUS"):
						fmt.Fprint(c, answer)
						return
					case strings.HasPrefix(line, "SET FORMAT") && !isJSON:
						fmt.Fprintln(c, "ERROR: Unknown command: "+line)
					default:
						fmt.Fprintln(c, "OK")
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}
