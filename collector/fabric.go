package collector

import (
	"slices"
	"sync"

	"rdma_exporter/internal/snapshot"
)

// fabric is the RDMA devices and the GPUs of the last round, for collectors that judge by them: the one that reads them is infiniband.
type fabric struct {
	mu      sync.Mutex
	devices []snapshot.Device
	gpus    []string // paths of their functions
}

// tell hands out what a round has found.
func (f *fabric) tell(devices []snapshot.Device, gpus []string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.devices, f.gpus = slices.Clone(devices), gpus
}

func (f *fabric) last() (devices []snapshot.Device, gpus []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.devices, f.gpus
}
