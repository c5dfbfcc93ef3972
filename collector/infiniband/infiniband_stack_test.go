package infiniband

import (
	"fmt"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/test/played"
)

// TestStack: the missing part of the stack, the reason for the expectation, and the exclusions.
func TestStack(t *testing.T) {
	function := func(address, vendor, device, class, driver string) string {
		return fmt.Sprintf("-- sys/bus/pci/devices/%[1]s/vendor --\n%[2]s\n-- sys/bus/pci/devices/%[1]s/device --\n%[3]s\n-- sys/bus/pci/devices/%[1]s/class --\n%[4]s\n-- sys/bus/pci/devices/%[1]s/driver -> ../../drivers/%[5]s --\n",
			address, vendor, device, class, driver)
	}
	const core, ipoib = "-- sys/module/ib_core/initstate --\nlive\n",
		"-- sys/class/infiniband/mlx5_0/node_type --\n1: CA\n"
	infiniBandNIC := function("0000:18:00.0", "0x15b3", "0x1021", "0x020700", "mlx5_core")
	ethernetNIC := function("0000:19:00.0", "0x8086", "0x1592", "0x020000", "ice")
	known := expect.Data{Functions: map[string]expect.FunctionRecord{"a": {Device: "mlx5_0", PCIAddress: "0000:19:00.0"}}}
	for name, c := range map[string]struct {
		machine   string
		memory    expect.Data
		want      string
		functions int
	}{
		"nothing can":        {function("0000:18:00.0", "0x8086", "0x1572", "0x020000", "i40e"), expect.Data{}, "", 0},
		"no PCI":             {core, expect.Data{}, "", 0},
		"InfiniBand":         {infiniBandNIC + ethernetNIC, expect.Data{}, "no_device rdma_function [{0000:18:00.0 rdma mlx5_core} {0000:19:00.0 ethernet ice}]", 2},
		"Ethernet":           {ethernetNIC, expect.Data{}, "no_device unknown [{0000:19:00.0 ethernet ice}]", 1},
		"Ethernet as before": {ethernetNIC, known, "no_device inventory [{0000:19:00.0 ethernet ice}]", 1},
		"lent":               {function("0000:18:00.0", "0x15b3", "0x1021", "0x020700", "vfio-pci"), known, "", 0},
		"a part":             {infiniBandNIC + "-- sys/bus/pci/devices/0000:18:00.0/physfn -> ../0000:17:00.0 --\n", expect.Data{}, "", 0},
		"of other namespaces": {
			infiniBandNIC + "-- rdma/system --\nnetns_mode: 0\n", expect.Data{}, "", 1,
		},
		"of other namespaces, nothing can": {
			function("0000:18:00.0", "0x8086", "0x1572", "0x020000", "i40e") + "-- rdma/system --\nnetns_mode: 0\n",
			expect.Data{},
			"", 0,
		},
		"no ib_uverbs":        {core + ipoib, expect.Data{}, "no_uverbs device []", 0},
		"loaded":              {core + ipoib + "-- sys/class/infiniband_verbs/abi_version --\n6\n", expect.Data{}, "loaded  []", 0},
		"modules not seen":    {ipoib, expect.Data{}, "loaded  []", 0},
		"class not permitted": {core + ipoib + "-- sys/class/infiniband_verbs !EACCES --\n", expect.Data{}, "loaded  []", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := played.Machine(t, c.machine)
			col := &infiniBand{
				memory: expect.NewMemory(c.memory),
				conf:   &shared.SiteConfig{},
				roster: shared.NewRoster(shared.Options{}),
			}
			col.readStack(t.Context(), h)
			col.absentFunctions(time.Unix(1e9, 0), "boot", nil, false)
			var devices []snapshot.Device
			for _, n := range col.stack.devices {
				devices = append(devices, snapshot.Device{Name: n})
			}
			if none := col.noDevice(h); (none == nil) != (len(col.stack.devices) > 0) ||
				none != nil && (none.Functions != c.functions || none.Namespaced != (name == "of other namespaces")) {
				t.Errorf("no device: %+v, want %d functions", none, c.functions)
			}
			got := ""
			if s := col.stackOf(time.Unix(1e9, 0), hostdata.Boot{}, devices); s != nil {
				got = fmt.Sprintf("%s %s %v", s.State, s.Expected, s.Functions)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestStackSettles: time since the boot, or since an observed change of the modules.
func TestStackSettles(t *testing.T) {
	up, now := 90000.0, time.Unix(1e9, 0)
	for _, c := range []struct {
		name    string
		uptime  *float64
		changed time.Time
		want    time.Duration
	}{
		{"since the boot", &up, time.Time{}, 25 * time.Hour},
		{"since a module", &up, now.Add(-time.Minute), time.Minute},
		{"the boot is not known", nil, now.Add(-time.Minute), time.Minute},
		{"nothing is known", nil, time.Time{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			col := &infiniBand{
				memory: expect.NewMemory(expect.Data{}), conf: &shared.SiteConfig{}, roster: shared.NewRoster(shared.Options{}),
				stack: stack{state: hostdata.StackNoDevice, changed: c.changed},
			}
			if got := col.stackOf(now, hostdata.Boot{Uptime: c.uptime}, nil).Settled; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	s := stack{devices: []string{}}
	for i, modules := range []string{"ib_core", "ib_core", "mlx5_ib"} {
		r := collectortest.ReadsOf(t,
			"-- sys/module/"+modules+"/initstate --\nlive\n-- sys/bus/pci/devices/0000:18:00.0/class --\n0x020700\n")
		s.read(r, nil)
		if s.changed.IsZero() != (i < 2) {
			t.Errorf("round %d: changed %v", i, s.changed)
		}
	}
}

func TestVerbsNodes(t *testing.T) {
	const class = "-- sys/class/infiniband_verbs/uverbs0/ibdev --\nmlx5_0\n-- sys/class/infiniband_verbs/uverbs1/ibdev --\nmlx5_1\n-- sys/class/infiniband_verbs/abi_version --\n6\n"
	for name, c := range map[string]struct{ dev, want string }{
		"a container's own": {"-- dev/infiniband/uverbs0 @unread --\n", "[]"},
		"all are there":     {"-- dev/char/231:192 @unread --\n-- dev/infiniband/uverbs0 @unread --\n-- dev/infiniband/uverbs1 @unread --\n", "[{mlx5_0 uverbs0 true} {mlx5_1 uverbs1 true}]"},
		"one":               {"-- dev/char/231:192 @unread --\n-- dev/infiniband/uverbs0 @unread --\n", "[{mlx5_0 uverbs0 true} {mlx5_1 uverbs1 false}]"},
		"none":              {"-- dev/char/1:3 @unread --\n", "[{mlx5_0 uverbs0 false} {mlx5_1 uverbs1 false}]"},
		"may not be listed": {"-- dev/char/1:3 @unread --\n-- dev/infiniband !EACCES --\n", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(verbsNodes(collectortest.ReadsOf(t, class+c.dev))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
