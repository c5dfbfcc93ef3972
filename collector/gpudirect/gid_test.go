package gpudirect

import (
	"reflect"
	"slices"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

func TestGIDIndices(t *testing.T) {
	verbs := []string{"uverbs0"}
	of := func(index string) map[string]string { return map[string]string{"NCCL_IB_GID_INDEX": index} }
	for _, c := range []struct {
		name    string
		process accel.Process
		want    []int
	}{
		{"of its environment", accel.Process{HasNCCL: true, Verbs: verbs, Env: of("3"), Conf: of("1")}, []int{3}},
		{"of its files", accel.Process{HasNCCL: true, Verbs: verbs, Conf: of("0x1")}, []int{1}},
		{"of the machine's file", accel.Process{HasNCCL: true, Verbs: verbs}, []int{5}},
		{"its files say nothing", accel.Process{HasNCCL: true, Verbs: verbs, Conf: map[string]string{}}, nil},
		{"NCCL's own choice", accel.Process{HasNCCL: true, Verbs: verbs, Env: of("-1")}, nil},
		{"no number", accel.Process{HasNCCL: true, Verbs: verbs, Env: of("three")}, nil},
		{"no RDMA device", accel.Process{HasNCCL: true, Env: of("3")}, nil},
		{"no NCCL", accel.Process{Verbs: verbs, Env: of("3")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := gidIndices([]accel.Process{c.process, c.process}, nccl.Env(of("5"))); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestGIDTypes(t *testing.T) {
	active, ca, down := uint64(sysfs.StateActive), uint64(sysfs.NodeCA), uint64(1)
	devices := []snapshot.Device{
		{Name: "mlx5_0", NodeType: &ca, Ports: []snapshot.Port{{Number: 1, LinkLayer: "Ethernet", State: &active}, {Number: 2, LinkLayer: "Ethernet", State: &down}}},
		{Name: "mlx5_1", NodeType: &ca, Ports: []snapshot.Port{{Number: 1, LinkLayer: "InfiniBand", State: &active}}},
	}
	const types = sysfs.ClassDir + "/mlx5_0/ports/1/gid_attrs/types/"
	r := collectortest.ReaderOf(
		t,
		collectortest.Files(
			types+"0",
			"IB/RoCE v1",
			types+"1",
			"RoCE v2",
		)+"-- "+types+"2 !EINVAL --\n-- "+types+"4 !EIO --\n",
	)
	got := readGIDTypes(r, "mlx5_0", devices, []int{0, 1, 2, 4, 255})
	want := map[gidKey]string{{1, 0}: "roce_v1", {1, 1}: "roce_v2", {1, 2}: "empty", {1, 255}: "empty"}
	if !reflect.DeepEqual(got, want) || len(r.Issues) != 1 {
		t.Errorf("%v %+v", got, r.Issues)
	}
	for _, device := range []string{"mlx5_1", "mlx5_2"} {
		if got := readGIDTypes(r, device, devices, []int{0}); len(got) != 0 {
			t.Errorf("%s: %v", device, got)
		}
	}
	if got := readGIDTypes(r, "mlx5_0", devices, nil); got != nil {
		t.Errorf("%v", got)
	}
}

// TestJobGIDs: each entry once, on the ports available to a job.
func TestJobGIDs(t *testing.T) {
	p := &accel.Process{
		HasNCCL: true, Verbs: []string{"uverbs0"}, Env: map[string]string{"NCCL_IB_GID_INDEX": "0"}, Job: "slurm/77",
	}
	nic := func(name string, types map[gidKey]string) gdrNIC {
		return gdrNIC{NIC: gdr.NIC{Device: name, Ports: []gdr.Port{{Number: 1, Active: true}}}, gids: types}
	}
	nics := []gdrNIC{
		nic("wrong", map[gidKey]string{{1, 0}: "roce_v1"}), nic("right", map[gidKey]string{{1, 0}: "roce_v2"}),
		nic("unread", nil), nic("unused", map[gidKey]string{{1, 0}: "roce_v1"}),
	}
	d := &accel.GDR{GPUs: []accel.GDRGPU{{Process: p}, {Process: p}, {}}}
	for range d.GPUs {
		for i := range nics {
			d.Pairs = append(d.Pairs, accel.GDRPair{Eligible: i < 3})
		}
	}
	var got []string
	for _, g := range jobGIDs(d, nics, nil) {
		got = append(got, g.Device+" "+g.Type)
		if g.Mismatch() != (g.Device == "wrong") || g.Process != p || g.Index != 0 || g.Port != 1 {
			t.Errorf("%+v", g)
		}
	}
	if want := []string{"wrong roce_v1", "right roce_v2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
