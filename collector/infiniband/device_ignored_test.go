package infiniband

import (
	"slices"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
)

// TestIgnored: an ignored object stays ignored while it cannot be read or is missing, until the configuration changes.
func TestIgnored(t *testing.T) {
	store := &site.Store{}
	c := &infiniBand{conf: &shared.SiteConfig{Store: store, Hostname: "gpu-1"}, facts: map[string][]site.Subject{}}
	names := []string{"mlx5_0", "mlx5_1"}
	devices := []snapshot.Device{
		{Name: "mlx5_0", BoardID: "MT_1", PCIAddress: "0000:18:00.0", Ports: []snapshot.Port{
			{Number: 1, LinkLayer: "Ethernet", Netdev: []snapshot.Netdev{{Name: "eth0"}, {Name: "eth1"}}},
			{Number: 2, LinkLayer: "InfiniBand"},
		}},
		{Name: "mlx5_1", BoardID: "MT_2", Ports: []snapshot.Port{{Number: 1}}},
	}
	ask := func(names []string, devices []snapshot.Device, missing []snapshot.MissingDevice, want ...snapshot.PortID) {
		t.Helper()
		if got := c.ignored(names, devices, missing); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	id := func(device string, port int) snapshot.PortID { return snapshot.PortID{Device: device, Number: port} }

	ask(names, devices, nil)
	store.Replace(collectortest.Conf(t, `- match: {board_id: MT_1, port: 2}
- match: {netdev: eth1}
- match: {board_id: MT_2, hostname: gpu-1}
`))
	all := []snapshot.PortID{id("mlx5_0", 1), id("mlx5_0", 2), id("mlx5_1", 0), id("mlx5_1", 1)}
	ask(names, devices, nil, all...)
	ask(names, nil, nil, all...)
	ask(names[:1], devices[:1], []snapshot.MissingDevice{{Name: "mlx5_1"}}, all...)
	ask(names[:1], devices[:1], nil, all[:2]...)
	ask(names, devices[:1], nil, all[:2]...) // mlx5_1 is back, and has not been read yet

	store.Replace(collectortest.Conf(t, "- match: {device: mlx5_1}\n"))
	ask(names, devices[:1], nil, id("mlx5_1", 0))
	ask(names[:1], devices[:1], []snapshot.MissingDevice{{Name: "mlx5_1"}}, id("mlx5_1", 0))
	store.Replace(collectortest.Conf(t, "- match: {pci_address: \"0000:9a:00.0\"}\n"))
	ask(nil, nil, []snapshot.MissingDevice{{Name: "mlx5_7", PCIAddress: "0000:9a:00.0"}}, id("mlx5_7", 0))

	store.Replace(&site.Config{})
	ask(names, devices, nil)
	if len(c.facts) != 0 {
		t.Errorf("%d devices are remembered for nothing", len(c.facts))
	}
}

func TestMissingPKeys(t *testing.T) {
	for _, c := range []struct {
		name          string
		pinned, table []uint16
		want          uint64
	}{
		{"all there", []uint16{0x8001, 0xffff}, []uint16{0xffff, 0x8001}, 0},
		{"one is not", []uint16{0x8001, 0x8002}, []uint16{0xffff, 0x8001}, 1},
		{"full membership is asked for", []uint16{0x8001}, []uint16{0x0001}, 1},
		{"any will do", []uint16{0x0001, 0x0002}, []uint16{0x8001, 0x0002}, 0},
		{"an empty table", []uint16{0x8001, 0x0002}, []uint16{}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := missingPKeys(c.pinned, c.table); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestPKeysArePinnedByPort(t *testing.T) {
	o := &shared.SiteConfig{Hostname: "gpu-1", Store: collectortest.Pinned(t,
		"pins:\n- {match: {device: mlx5_*, port: 1}, pkeys: [0x8001]}\n- {match: {device: mlx5_1}, pkeys: []}\n")}
	devices := []snapshot.Device{
		{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, PKeyTable: []uint16{0xffff}}, {Number: 2, PKeyTable: []uint16{0xffff}}}},
		{Name: "mlx5_1", Ports: []snapshot.Port{{Number: 1, PKeyTable: []uint16{0xffff}}}},
		{Name: "mlx5_2", Ports: []snapshot.Port{{Number: 1}}}, // not read
		{Name: "mlx5_3", Ports: []snapshot.Port{{Number: 1, PKeyTable: []uint16{0x8001}}}},
	}
	comparePKeys(o, devices)
	for i, want := range []any{uint64(1), nil, nil, uint64(0)} {
		if got := collectortest.Value(devices[i].Ports[0].PKeysMissing); got != want {
			t.Errorf("%s: %v, want %v", devices[i].Name, got, want)
		}
	}
	if devices[0].Ports[1].PKeysMissing != nil {
		t.Error("a port for which none is pinned lacks some")
	}
	comparePKeys(&shared.SiteConfig{}, devices)
}
