package collector

import (
	"path"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// functions decides what is read of the devices of a host. A host has thousands of functions if virtual functions and subfunctions are
// made for guests and containers.
type functions struct {
	limit   int                    // of devices; 0: none
	metrics func() map[string]bool // that are read of parts; nil: all

	mu            sync.Mutex
	names         []string // of the last call, with their registrations
	registrations []uint64
	parts         map[string]bool
	chosen        []string
	reduced       *snapshot.Reduced
}

// reduce returns the devices to be read, and what is left out. The result is shared and kept while the devices are the same.
func (f *functions) reduce(h *host.Host, names []string) ([]string, *snapshot.Reduced) {
	if f == nil {
		return names, &snapshot.Reduced{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.same(h, names) {
		f.learn(h, names)
		f.choose()
	}
	return f.chosen, f.reduced
}

// same reports whether the devices are those of the last call.
func (f *functions) same(h *host.Host, names []string) bool {
	if f.reduced == nil || !slices.Equal(names, f.names) {
		return false
	}
	for i, name := range names {
		if h.Registration(name) != f.registrations[i] {
			return false
		}
	}
	return true
}

// learn finds the parts. Those of earlier calls are kept while their registration is the same.
func (f *functions) learn(h *host.Host, names []string) {
	before := make(map[string]uint64, len(f.names))
	for i, name := range f.names {
		before[name] = f.registrations[i]
	}
	parts := map[string]bool{}
	f.registrations = make([]uint64, len(names))
	for i, name := range names {
		f.registrations[i] = h.Registration(name)
		known, ok := before[name]
		if ok && known == f.registrations[i] && f.parts[name] || !(ok && known == f.registrations[i]) && besidePhysical(h.Files, name) {
			parts[name] = true
		}
	}
	f.names, f.parts = slices.Clone(names), parts
}

// besidePhysical reports whether a device is a virtual function or a subfunction whose physical function is on this host. In a guest a
// virtual function has no link physfn.
func besidePhysical(files host.Files, device string) bool {
	dir, err := files.Resolve(classDir + "/" + device + "/device")
	if err != nil {
		return false
	}
	if strings.Contains(path.Base(dir), ".sf.") {
		return true
	}
	_, err = files.Link(dir + "/physfn")
	return err == nil
}

// choose applies the limit: parts are left out first.
func (f *functions) choose() {
	f.chosen, f.reduced = f.names, &snapshot.Reduced{Parts: f.parts}
	if f.limit > 0 && len(f.names) > f.limit {
		all := slices.SortedFunc(slices.Values(f.names), f.reduced.Compare)
		f.chosen, f.reduced.LeftOut = all[:f.limit], all[f.limit:]
	}
	if len(f.parts) > 0 && f.metrics != nil {
		f.reduced.Metrics = f.metrics()
	}
}
