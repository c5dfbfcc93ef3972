package live

import (
	"errors"
	"syscall"
	"testing"

	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// TestCopiedTree: a copied tree has files only, and pods where the socket of the kubelet is given.
func TestCopiedTree(t *testing.T) {
	dir, _ := hosttest.Machine(t)
	for _, socket := range []string{"", "kubelet.sock"} {
		l, err := Open(rooted.Paths{RootFS: dir, PodResources: socket})
		if err != nil {
			t.Fatal(err)
		}
		if l.Networkd != nil || l.LLDP != nil || l.Events != nil || (l.Pods != nil) != (socket != "") {
			t.Errorf("--collector.gdr.pod-resources=%s: %+v", socket, l.Host)
		}
		if _, err := l.RDMA.System(t.Context()); !errors.Is(err, syscall.EPROTONOSUPPORT) {
			t.Errorf("a copied tree asks: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
