package gpudirect

import (
	"reflect"
	"testing"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
)

// TestDecidedAgainWhereSomethingChanged, and only there.
func TestDecidedAgainWhereSomethingChanged(t *testing.T) {
	machine, gpus, nics := eightPlanes()
	active, down := uint64(sysfs.StateActive), uint64(1)
	var devices []snapshot.Device
	for i := range nics {
		devices = append(devices,
			snapshot.Device{Name: nics[i].Device, Ports: []snapshot.Port{{Number: 1, State: &active, Role: "compute"}}})
	}
	linked := true
	c := &gpuDirect{}
	for _, step := range []struct {
		name   string
		change func()
		again  bool
	}{
		{"at first", func() {}, true},
		{"nothing", func() {}, false},
		{"a port goes down", func() { devices[3].Ports[0].State = &down }, true},
		{"a counter rises", func() { devices[3].Ports[0].Counters = []wire.Stat{{Name: "port_rcv_data", Value: 1}} }, false},
		{"a device has another role", func() { devices[4].Ports[0].Role = "other" }, true},
		{"a port is made", func() { devices[5].Ports = append(devices[5].Ports, snapshot.Port{Number: 2}) }, true},
		{"NVML tells of links", func() { gpus[0].Linked = &linked }, true},
		{"NVML tells the same again", func() { again := linked; gpus[0].Linked = &again }, false},
		{"a place was read again", func() { nics[0].at = time.Unix(1, 0) }, true},
		{"processes were read", func() { c.jobs.read.Read(time.Unix(1, 0)) }, true},
		{"modules were read", func() { machine.read.Read(time.Unix(1, 0)) }, true},
		{"the tree was read", func() { c.tree.read.Read(time.Unix(1, 0)) }, true},
		{"a device comes whose place cannot be read", func() { machine.facts.Devices = len(nics) + 1 }, true},
		{"nothing again", func() {}, false},
	} {
		step.change()
		before := c.answer
		section := c.evaluate(machine, gpus, nics, devices)
		if again := c.answer != before; again != step.again {
			t.Errorf("%s: decided again: %v", step.name, again)
		}
		fresh, _ := evaluateGDR(machine, gpus, nics, nil, c.nccl)
		for i := range section.GPUs {
			if !reflect.DeepEqual(section.GPUs[i].Best, fresh.GPUs[i].Best) {
				t.Errorf("%s: GPU %d: %+v, want %+v", step.name, i, section.GPUs[i].Best, fresh.GPUs[i].Best)
			}
		}
		section.GPUs[0].Transport = &accel.GDRTransport{} // a round's own
		if c.answer.section.GPUs[0].Transport != nil {
			t.Errorf("%s: rounds share their GPUs", step.name)
		}
	}
}
