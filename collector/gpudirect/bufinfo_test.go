package gpudirect

import (
	"maps"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// buffers is bufinfo of Linux 6.12: a buffer of the GPU driver with a NIC and a GPU attached, one without attachments,
// and one of another driver.
const buffers = `
Dma-buf Objects:
size    	flags   	mode    	count   	exp_name	ino     	name
268435456	02000002	00080007	00000003	nvidia	00004242	<none>
	kernel fence:nv gpu signalled
	Attached Devices:
	0000:18:00.0
	0000:19:00.0
Total 2 devices attached

04194304	02000002	00080007	00000002	nvidia	00004243	nccl
	Attached Devices:
Total 0 devices attached

00065536	02000002	00080007	00000002	i915	00004244	<none>
	Attached Devices:
	0000:18:00.0
Total 1 devices attached


Total 3 objects, 272695296 bytes
`

func TestParseBufinfo(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		complete   bool
	}{
		{"three buffers", buffers, map[string]uint64{"0000:18:00.0": 1, "0000:19:00.0": 1}, true},
		{"its beginning", buffers[:strings.Index(buffers, "04194304")], map[string]uint64{"0000:18:00.0": 1, "0000:19:00.0": 1}, false},
		{"none", "\nDma-buf Objects:\nsize    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n\nTotal 0 objects, 0 bytes\n", map[string]uint64{}, true},
		{"empty", "", map[string]uint64{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, complete := parseBufinfo([]byte(c.text)); !maps.Equal(got, c.want) || complete != c.complete {
				t.Errorf("%v %v", got, complete)
			}
		})
	}
}

func FuzzParseBufinfo(f *testing.F) {
	f.Add([]byte(buffers))
	f.Fuzz(func(t *testing.T, b []byte) {
		attached, _ := parseBufinfo(b)
		for device, n := range attached {
			if device == "" || n == 0 || n > uint64(len(b)) {
				t.Errorf("%q: %d", device, n)
			}
		}
	})
}

// TestBufinfoIsAskedSeldom: only if permitted, while a job is suspected, and at most every 10m.
func TestBufinfoIsAskedSeldom(t *testing.T) {
	h := played.Machine(t, "-- "+host.BufinfoFile+" --\n"+buffers)
	now := time.Unix(5000, 0)
	h.Now = func() time.Time { return now }
	asked := func() uint64 {
		for _, c := range h.Meter.Costs() {
			if c.Source == source.Bufinfo {
				return c.Requests
			}
		}
		return 0
	}
	gpus := []gdrGPU{{GPU: gdr.GPU{Address: "0000:19:00.0"}}}
	var n snapshot.Node
	off := bufinfo{}
	if off.refresh(t.Context(), h, &n, true); asked() != 0 || off.of(now, gpus) != nil {
		t.Error("bufinfo is read without permission")
	}
	b := bufinfo{on: true}
	for _, c := range []struct {
		after     time.Duration
		suspected bool
		asked     uint64
		want      any
	}{
		{0, false, 0, nil},
		{time.Minute, true, 1, uint64(1)},
		{time.Minute, true, 1, uint64(1)},
		{8 * time.Minute, true, 1, uint64(1)},
		{time.Minute, false, 1, uint64(1)},
		{time.Minute, false, 1, nil},
		{time.Minute, true, 2, uint64(1)},
	} {
		now = now.Add(c.after)
		b.refresh(t.Context(), h, &n, c.suspected)
		if got := collectortest.Value(b.of(now, gpus)); asked() != c.asked || got != c.want {
			t.Errorf("%s, suspected %v: asked %d times, %v; want %d, %v", now, c.suspected, asked(), got, c.asked, c.want)
		}
	}
	if len(n.Issues) != 0 {
		t.Errorf("%+v", n.Issues)
	}
}

func TestBufinfoThatTellsNothing(t *testing.T) {
	for _, c := range []struct {
		name, entries string
		issues        int
	}{
		{"no debugfs", collectortest.Files("proc/uptime", "1 1"), 1},
		{"not permitted", "-- " + host.BufinfoFile + " !EACCES --\n", 1},
		{"a part without attachments", collectortest.Files(host.BufinfoFile, "\nDma-buf Objects:\nsize\tflags"), 0},
		{"more than is read", collectortest.Files(host.BufinfoFile, strings.Repeat("00065536\t02000002\t00080007\t00000002\ti915\t00004244\t<none>\n", 2000)+"Total 2000 objects, 1 bytes"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bufinfo{on: true}
			var n snapshot.Node
			h := played.Machine(t, c.entries)
			b.refresh(t.Context(), h, &snapshot.Node{}, true)
			if b.refresh(t.Context(), h, &n, true); b.of(h.Now(), nil) != nil || len(n.Issues) != c.issues {
				t.Errorf("%v %+v", collectortest.Value(b.of(h.Now(), nil)), n.Issues)
			}
		})
	}
}
