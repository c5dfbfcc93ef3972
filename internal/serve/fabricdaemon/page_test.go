package fabricdaemon

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/mad"
)

// TestFabricShown: the data of the pages is made once per sweep, and dropped with the next sweep.
func TestFabricShown(t *testing.T) {
	m := &fabric.Monitor{
		Open:   func() (mad.Transport, error) { return nil, errors.New("no device") },
		Memory: fabric.NewMemory(fabric.Data{}), Logger: slog.New(slog.DiscardHandler),
	}
	opened, err := live.Open(rooted.Paths{RootFS: hosttest.InfiniBandPorts(t)})
	must(t, err)
	defer opened.Close()
	c := Command{interval: time.Minute}
	x, pages, err := c.newPages(&machine.Fabric{Machine: &machine.Machine{Host: &opened.Host}, Monitor: m}, nil)
	must(t, err)
	m.Run(t.Context(), func(sweep func()) {
		for range 2 {
			shown, links, whole := x.makeFabric(), pages.Views["links"].Of(), pages.Views["api/v1/fabric"].Of()
			if x.makeFabric() != shown || pages.Views["links"].Of() != links || pages.Views["api/v1/fabric"].Of() != whole {
				t.Error("is made again without a sweep")
			}
			x.forget()
			if x.kept == nil {
				t.Error("the last sweep is forgotten")
			}
			sweep()
			if x.makeFabric() == shown || pages.Views["links"].Of() == links || pages.Views["api/v1/fabric"].Of() == whole {
				t.Error("shows the sweep before")
			}
			sweep()
			x.forget()
			if x.kept != nil || x.of.picture != nil {
				t.Error("keeps a sweep that is not the last")
			}
		}
	})
}
