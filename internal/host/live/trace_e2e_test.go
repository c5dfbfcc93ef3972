//go:build e2e

package live

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/rooted"
)

// TestProgramsInGuest lists the eBPF programs of this package that the kernel has. test/kernel runs it in the virtual
// machine.
func TestProgramsInGuest(t *testing.T) {
	var names []string
	for id := ebpf.ProgramID(0); ; {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			break
		}
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it has ended
		}
		info, err := p.Info()
		if err == nil && strings.HasPrefix(info.Name, "rdma_") {
			names = append(names, info.Name+"/"+info.Type.String())
		}
		p.Close()
	}
	t.Logf("programs: %s", strings.Join(names, " "))
	if want := os.Getenv("RDMA_PROGRAMS") == "attached"; want != (len(names) > 0) {
		t.Errorf("%d programs, want some: %t", len(names), want)
	}
}

// TestTraceHere attaches the programs on this host. One that cannot says why in one line, and is not asked again.
func TestTraceHere(t *testing.T) {
	h, err := Open(rooted.Paths{Sys: "/sys", Proc: "/proc"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	traced := make(chan error, 1)
	go func() { traced <- h.Tracer.Trace(ctx) }()
	if err := <-traced; err != nil {
		t.Logf("cannot: %v", err)
		if !errors.As(err, &host.LastingError{}) || strings.Contains(err.Error(), "\n") {
			t.Errorf("not one lasting reason: %q", err)
		}
	}
}
