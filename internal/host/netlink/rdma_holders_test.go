package netlink

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/vishvananda/netlink/nl"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// region returns an entry of RES_MR_GET as the kernel sends it: length, number, number of the protection domain, then
// the process.
func region(pid uint32, length uint64) []byte {
	return Attr(nldevAttrResMREntry, Attr(nldevAttrResMRLen, u64(length)), Attr(63, u32(9)), Attr(60, u32(4)),
		Attr(nldevAttrResPID, u32(pid)))
}

func resourcesMessage(device string, table uint16, entries ...[]byte) []byte {
	return slices.Concat(Attr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, u32(3)),
		Attr(nl.RDMA_NLDEV_ATTR_DEV_NAME, str(device)), Attr(table, entries...))
}

func TestParseResources(t *testing.T) {
	ofKernel := Attr(nldevAttrResMREntry, Attr(nldevAttrResMRLen, u64(4096)), Attr(nldevAttrResKernName, str("ib_srpt")))
	for _, c := range []struct {
		name string
		msg  []byte
		want []resource
		bad  bool
	}{
		{"two regions", resourcesMessage("mlx5_0", nldevAttrResMR, region(42, 1<<40), region(43, 1)), []resource{{42, 1 << 40}, {43, 1}}, false},
		{"one of the kernel between them", resourcesMessage("mlx5_0", nldevAttrResMR, region(42, 8), ofKernel, region(42, 9)), []resource{{42, 8}, {42, 9}}, false},
		{"a maker that cannot be seen", resourcesMessage("mlx5_0", nldevAttrResMR, Attr(nldevAttrResMREntry, Attr(nldevAttrResMRLen, u64(7)))), []resource{{0, 7}}, false},
		{"a number that is none", resourcesMessage("mlx5_0", nldevAttrResMR, Attr(nldevAttrResMREntry, Attr(nldevAttrResPID, u32(1<<31)), Attr(nldevAttrResMRLen, make([]byte, 3)))), []resource{{}}, false},
		{"contexts are not regions", resourcesMessage("mlx5_0", nldevAttrResCtx, Attr(nldevAttrResCtxEntry, Attr(nldevAttrResPID, u32(42)))), nil, false},
		{"another attribute among them", resourcesMessage("mlx5_0", nldevAttrResMR, Attr(20, Attr(nldevAttrResPID, u32(1))), region(42, 8)), []resource{{42, 8}}, false},
		{"none", resourcesMessage("mlx5_0", nldevAttrResMR), nil, false},
		{"without device", Attr(nldevAttrResMR, region(42, 8)), nil, true},
		{"empty", nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, device, err := parseResources(c.msg, nldevAttrResMR, nldevAttrResMREntry, parseResource)
			if !slices.Equal(got, c.want) || c.bad != errors.Is(err, access.ErrMalformed) || !c.bad && device != "mlx5_0" {
				t.Errorf("%v of %q, %v", got, device, err)
			}
		})
	}
	got, _, err := parseResources(resourcesMessage("mlx5_0", nldevAttrResCtx,
		Attr(nldevAttrResCtxEntry, Attr(65, u32(1)), Attr(nldevAttrResPID, u32(42)))), nldevAttrResCtx, nldevAttrResCtxEntry,
		parseResource)
	if want := []resource{{pid: 42}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("contexts: %v %v", got, err)
	}
	whole := resourcesMessage("mlx5_0", nldevAttrResMR, region(42, 8), region(43, 9))
	for n := range whole {
		if got, device, err := parseResources(whole[:n], nldevAttrResMR, nldevAttrResMREntry, parseResource); err == nil &&
			(device != "mlx5_0" || len(got) > 2) {
			t.Errorf("%d of %d bytes: %v of %q", n, len(whole), got, device)
		}
	}
}

// TestMakers: a thread with a hundred thousand regions is mapped once.
func TestMakers(t *testing.T) {
	asked := map[int]int{}
	leader := func(tid int) int {
		asked[tid]++
		return tid / 10 * 10
	}
	m := makers{processes{leader, map[int]int{}}, map[int]*host.RDMAHolder{}}
	for range 1000 {
		for _, tid := range []int{70, 71, 80, 0} {
			m.of(tid).Regions++
		}
	}
	if len(m.found) != 3 || m.found[70].Regions != 2000 || m.found[80].Regions != 1000 || m.found[0].Regions != 1000 {
		t.Errorf("%+v", m.found)
	}
	if want := map[int]int{70: 1, 71: 1, 80: 1}; !maps.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	if m := (makers{processes{nil, map[int]int{}}, map[int]*host.RDMAHolder{}}); m.of(71).PID != 71 {
		t.Error("without a tree the thread stands for its process")
	}
}

func FuzzParseResources(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(resourcesMessage("mlx5_0", nldevAttrResMR, region(42, 8), region(0, 9)))
	f.Fuzz(func(t *testing.T, msg []byte) {
		found, device, err := parseResources(msg, nldevAttrResMR, nldevAttrResMREntry, parseResource)
		if (err == nil) != (device != "") || err != nil && found != nil {
			t.Fatalf("%v of %q, %v", found, device, err)
		}
		if len(found) > len(msg)/4 {
			t.Fatalf("%d resources from %d bytes", len(found), len(msg))
		}
		for _, r := range found {
			if r.pid < 0 {
				t.Fatalf("process %d", r.pid)
			}
		}
	})
}
