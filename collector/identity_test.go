package collector

import (
	"strings"
	"sync"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// boards are files that count the reads of board_id.
type boards struct {
	host.Files
	mu    sync.Mutex
	reads int
}

func (f *boards) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if name == "board_id" {
		f.mu.Lock()
		f.reads++
		f.mu.Unlock()
	}
	return f.Files.ReadIn(dir, name, buf)
}

// TestIdentityIsReadByOne: one collector reads what a device is, for all, and a failure is reported for the device.
func TestIdentityIsReadByOne(t *testing.T) {
	h := played.Machine(t, collectortest.PCIeTree("-- sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/"+
		"0000:18:00.0/infiniband/mlx5_0/board_id !EIO --\n"))
	files := &boards{Files: h.Files}
	h.Files = files
	round := h.ForRound()
	failed := map[string]bool{}
	for _, c := range All(shared.Options{}) {
		var n snapshot.Node
		c.Read(t.Context(), round, &n, func(error) {})
		for _, i := range n.Issues {
			if strings.HasSuffix(i.Err.Error(), "input/output error") {
				failed[c.Name+" "+i.Device] = true
			}
		}
	}
	if files.reads != 1 || !failed["infiniband mlx5_0"] || !failed["hwcounters mlx5_0"] {
		t.Errorf("%d reads, failed %v", files.reads, failed)
	}
}
