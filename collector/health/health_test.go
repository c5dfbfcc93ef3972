package health

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/modules"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// nodeWithReporters has RDMA devices on physical functions, a virtual one, sub-functions and in software.
const nodeWithReporters = `-- devlink/health --
pci/0000:18:00.0/fw: state=0 errors=2 recoveries=0
pci/0000:18:00.0/fw_fatal: state=1 errors=1 recoveries=0
pci/0000:18:00.0/65535/tx: state=1 errors=9 recoveries=9
pci/0000:18:00.1/vnic: state=0
pci/0000:19:00.0/fw: state=7 errors=0
auxiliary/mlx5_core.sf.4/vnic: state=0 errors=0 recoveries=0
auxiliary/0000:18:00.0/fw: state=1 errors=1 recoveries=1
-- sys/class/infiniband/mlx5_0 -> ../../devices/pci/0000:18:00.0/infiniband/mlx5_0 --
-- sys/class/infiniband/mlx5_1 -> ../../devices/pci/0000:18:00.1/infiniband/mlx5_1 --
-- sys/class/infiniband/mlx5_2 -> ../../devices/pci/0000:18:00.0/mlx5_core.sf.4/infiniband/mlx5_2 --
-- sys/class/infiniband/mlx5_3 -> ../../devices/pci/0000:18:00.0/mlx5_core.sf.5/infiniband/mlx5_3 --
-- sys/class/infiniband/mlx5_4 -> ../../devices/pci/0000:19:00.0/infiniband/mlx5_4 --
-- sys/class/infiniband/rxe0/parent --
eth0
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/device -> ../.. --
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.4/infiniband/mlx5_2/device -> ../.. --
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.5/infiniband/mlx5_3/device -> ../.. --
-- sys/devices/pci/0000:18:00.1/infiniband/mlx5_1/device -> ../.. --
-- sys/devices/pci/0000:18:00.1/physfn -> ../0000:18:00.0 --
-- sys/devices/pci/0000:19:00.0/infiniband/mlx5_4/device -> ../.. --
`

func TestHealthOfTheFunctionsOfRDMADevices(t *testing.T) {
	of := map[string][]string{
		"mlx5_0": {
			`rdma_device_health_errors_total{device="mlx5_0",reporter="fw"} 2`,
			`rdma_device_health_errors_total{device="mlx5_0",reporter="fw_fatal"} 1`,
			`rdma_device_health_recoveries_total{device="mlx5_0",reporter="fw"} 0`,
			`rdma_device_health_recoveries_total{device="mlx5_0",reporter="fw_fatal"} 0`,
			`rdma_device_health_state{device="mlx5_0",reporter="fw",state="error"} 0`,
			`rdma_device_health_state{device="mlx5_0",reporter="fw_fatal",state="error"} 1`,
		},
		"mlx5_1": { // a virtual function with its own reporter, without counts
			`rdma_device_health_state{device="mlx5_1",reporter="vnic",state="error"} 0`,
		},
		"mlx5_2": { // a sub-function with one
			`rdma_device_health_errors_total{device="mlx5_2",reporter="vnic"} 0`,
			`rdma_device_health_state{device="mlx5_2",reporter="vnic",state="error"} 0`,
		},
		"mlx5_3": nil, // a sub-function does not have those of its parent
		"mlx5_4": { // an unknown state
			`rdma_device_health_errors_total{device="mlx5_4",reporter="fw"} 0`,
		},
		"rxe0": nil,
	}
	h := played.Machine(t, nodeWithReporters)
	for name, want := range of {
		t.Run(name, func(t *testing.T) {
			c := New(shared.NewState(shared.Options{Include: regexp.MustCompile("^" + name + "$")}))
			n, err := collectortest.ReadOnce(t.Context(), c.Read, h)
			if err != nil || len(n.Issues) != 0 {
				t.Errorf("%v, %v", err, n.Issues)
			}
			got := collectortest.Samples(c.Descs, func(s metric.Sink) { c.Emit(&n, s) })
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	n, err := collectortest.ReadOnce(
		t.Context(),
		New(shared.NewState(shared.Options{Exclude: regexp.MustCompile("^mlx5_[0-2]$")})).Read,
		h,
	)
	if err != nil || len(n.Health.Reporters) != 1 || n.Health.Reporters[0].Device != "mlx5_4" {
		t.Errorf("%+v, %v", n.Health, err)
	}
}

func TestHealthThatIsNotToBeHad(t *testing.T) {
	const device = "-- sys/class/infiniband/mlx5_0/node_guid --\nx\n"
	for _, c := range []struct {
		name, tree string
		reason     string
	}{
		{"no devlink", device, ""},
		{"a kernel without health reporters", device + "-- devlink/health !EOPNOTSUPP --\n", ""},
		{"no permission", device + "-- devlink/health !EPERM --\n", "permission"},
		{"garbled", device + "-- devlink/health --\nfw\n", "malformed"},
		{"no RDMA device", "-- devlink/health !EIO --\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := collectortest.ReadOnce(
				t.Context(),
				New(shared.NewState(shared.Options{})).Read,
				played.Machine(t, c.tree),
			)
			if err != nil || n.Health == nil || len(n.Health.Reporters) != 0 {
				t.Errorf("%+v, %v", n.Health, err)
			}
			reason := ""
			for _, i := range n.Issues {
				reason += i.Reason
			}
			if reason != c.reason {
				t.Errorf("%q, want %q", reason, c.reason)
			}
		})
	}
}

// stuckDevlink hangs until released.
type stuckDevlink struct {
	asked   chan struct{}
	release chan struct{}
}

func (d stuckDevlink) Health(context.Context) ([]host.HealthReporter, error) {
	d.asked <- struct{}{}
	<-d.release
	return nil, nil
}

func TestStuckDevlinkCostsTheHealthOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := played.Machine(t, nodeWithReporters)
		d := stuckDevlink{make(chan struct{}, 1), make(chan struct{})}
		playing := h.Devlink
		h.Devlink = d
		c := New(shared.NewState(shared.Options{}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 2 { // the second one is not started
			n, err := collectortest.ReadOnce(ctx, c.Read, h)
			if !errors.Is(err, access.ErrStuck) || n.Health != nil {
				t.Errorf("%+v, %v", n.Health, err)
			}
			if len(n.Issues) != 1 || n.Issues[0].Reason != string(access.Stuck) || n.Issues[0].Device != "" {
				t.Errorf("%v", n.Issues)
			}
			if !slices.Equal(n.Devices, []snapshot.DeviceRead{{Stuck: true}}) {
				t.Errorf("%v", n.Devices)
			}
		}
		if <-d.asked; len(d.asked) != 0 {
			t.Error("asked again while the first request has not returned")
		}
		read := modules.New(shared.NewState(shared.Options{})).Read
		if n, err := collectortest.ReadOnce(t.Context(), read, h); err != nil || n.Modules == nil {
			t.Errorf("another collector: %v", err)
		}
		h.Devlink = playing
		close(d.release)
		synctest.Wait() // until the late request has ended
		n, err := collectortest.ReadOnce(t.Context(), c.Read, h)
		if err != nil || len(n.Health.Reporters) == 0 || !slices.Equal(n.Devices, []snapshot.DeviceRead{{}}) {
			t.Errorf("after it returned: %+v, %v, %v", n.Health, n.Devices, err)
		}
	})
}
