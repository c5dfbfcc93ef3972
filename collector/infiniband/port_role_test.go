package infiniband

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/snapshot"
)

// fourRails returns four devices without GPUs. The given ones are ACTIVE.
func fourRails(active ...int) []snapshot.Device {
	var out []snapshot.Device
	for i := range 4 {
		state := uint64(1)
		for _, a := range active {
			if a == i {
				state = sysfs.StateActive
			}
		}
		out = append(out, snapshot.Device{
			Name:     fmt.Sprintf("mlx5_%d", i),
			NodeGUID: fmt.Sprintf("b83f:d203:0050:a1c%d", i), PCIAddress: fmt.Sprintf("0000:%d8:00.0", i),
			Path: fmt.Sprintf("sys/devices/pci0000:%d7/0000:%d7:01.0/0000:%d8:00.0", i, i, i), Driver: "mlx5_core",
			BoardID: "MT_0000000838", FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand", State: &state}},
		})
	}
	return out
}

func rolesOf(devices []snapshot.Device) (out []string) {
	for i := range devices {
		out = append(out, devices[i].Ports[0].Role+"/"+devices[i].Ports[0].RoleSource)
	}
	return out
}

// TestRoleIsRemembered: a compute role that lasted 10m survives failing ports and a restart; accepting discards it.
func TestRoleIsRemembered(t *testing.T) {
	newOne := func(m *expect.Memory) *infiniBand {
		return &infiniBand{
			memory: m, conf: &shared.SiteConfig{}, common: shared.NewCommonLinks(), ports: map[deviceKey]map[int]*portHistory{},
			roles: roles{ports: map[roleKey]*roleState{}},
		}
	}
	const compute, none = "[compute/siblings compute/siblings compute/siblings compute/siblings]",
		"[unknown/ unknown/ unknown/ unknown/]"
	memory := expect.NewMemory(expect.Data{})
	c, now := newOne(memory), time.Unix(1e9, 0)
	round := func(want string, after time.Duration, active ...int) []snapshot.Device {
		t.Helper()
		now = now.Add(after)
		devices := fourRails(active...)
		c.remember(now, devices)
		if got := fmt.Sprint(rolesOf(devices)); got != want {
			t.Errorf("%v ACTIVE: %s, want %s", active, got, want)
		}
		return devices
	}
	round(none, 0, 0, 1)
	round(compute, time.Minute, 0, 1, 2)
	if devices := round(compute, time.Minute, 0, 1, 2); !devices[3].Ports[0].PeersActive ||
		devices[0].Ports[0].PeersActive {
		t.Error("the fourth ought to be ACTIVE as its peers are, and it alone")
	}
	round(none, time.Minute, 0, 1) // too early
	round(compute, time.Minute, 0, 1, 2)
	round(compute, 10*time.Minute, 0, 1, 2)
	round(compute, time.Minute, 0)
	c = newOne(expect.NewMemory(memory.Data()))
	round(compute, time.Minute)
	if _, _, err := c.memory.Accept([]string{"mlx5_1"}, false); err != nil {
		t.Error(err)
	}
	round("[compute/siblings unknown/ compute/siblings compute/siblings]", time.Minute)
}
