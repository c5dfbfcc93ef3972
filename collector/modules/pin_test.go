package modules

import (
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/snapshot/hostdata"
)

func TestDriverPin(t *testing.T) {
	o := &shared.SiteConfig{
		Store: collectortest.Pinned(t, "pins:\n- {match: {hostname: gpu-*}, ofed: \"25.10-*\"}\n"), Hostname: "gpu-1",
	}
	for _, c := range []struct {
		name   string
		module hostdata.Module
		want   string
	}{
		{"as pinned", hostdata.Module{Name: "mlx5_core", Loaded: true, Flavour: "ofed", Version: "25.10-1.7.1"}, "met"},
		{"another version", hostdata.Module{Name: "mlx5_core", Loaded: true, Flavour: "ofed", Version: "24.10-1.1.4"}, "not met"},
		{"the kernel's own", hostdata.Module{Name: "mlx5_core", Loaded: true, Flavour: "in-tree", Version: "25.10-1.7.1"}, "not met"},
		{"not loaded", hostdata.Module{Name: "mlx5_core", Version: "25.10-1.7.1"}, "nothing"},
		{"another driver", hostdata.Module{Name: "bnxt_en", Loaded: true}, "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := "nothing"
			if p := driverPin(o, []hostdata.Module{c.module}); p != nil {
				if got = "not met"; p.Met {
					got = "met"
				}
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if driverPin(&shared.SiteConfig{}, []hostdata.Module{{Name: "mlx5_core", Loaded: true}}) != nil {
		t.Error("a pin without a file")
	}
}
