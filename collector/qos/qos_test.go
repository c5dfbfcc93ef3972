package qos

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// nodeWithPriorities has a RoCE device, a virtual function of it, a sub-function, an InfiniBand device and one in
// software.
const nodeWithPriorities = `-- dcb/eth0/ieee --
dcbx: 13
pfc_capability: 8
pfc_enabled: 0x8
pfc_requests: 0 0 0 12 0 0 0 0
pfc_indications: 0 0 0 3 0 0 0 0
apps: 1
app_dscp_3: 26
-- dcb/eth1/ieee --
dcbx: 1
-- dcb/eth2/ieee --
dcbx: 1
-- dcb/ib0/ieee --
dcbx: 1
-- sys/class/infiniband/mlx5_0 -> ../../devices/pci/0000:18:00.0/infiniband/mlx5_0 --
-- sys/class/infiniband/mlx5_1 -> ../../devices/pci/0000:18:00.1/infiniband/mlx5_1 --
-- sys/class/infiniband/mlx5_2 -> ../../devices/pci/0000:18:00.0/mlx5_core.sf.4/infiniband/mlx5_2 --
-- sys/class/infiniband/mlx5_3 -> ../../devices/pci/0000:19:00.0/infiniband/mlx5_3 --
-- sys/class/infiniband/rxe0/parent --
eth0
-- sys/class/infiniband/rxe0/ports/1/link_layer --
Ethernet
-- sys/class/net/eth0 -> ../../devices/pci/0000:18:00.0/net/eth0 --
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/board_id --
MT_0000000838
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/device -> ../.. --
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/ports/1/link_layer --
Ethernet
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.4/infiniband/mlx5_2/device -> ../.. --
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.4/infiniband/mlx5_2/ports/1/link_layer --
Ethernet
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.4/net/eth2/type --
1
-- sys/devices/pci/0000:18:00.0/mlx5_core.sf.4/net/eth2/dev_port --
0
-- sys/devices/pci/0000:18:00.0/net/eth0/type --
1
-- sys/devices/pci/0000:18:00.0/net/eth0/dev_port --
0
-- sys/devices/pci/0000:18:00.0/net/eth0/carrier_up_count --
1
-- sys/devices/pci/0000:18:00.0/net/eth0/carrier_down_count --
1
-- sys/devices/pci/0000:18:00.1/infiniband/mlx5_1/device -> ../.. --
-- sys/devices/pci/0000:18:00.1/infiniband/mlx5_1/ports/1/link_layer --
Ethernet
-- sys/devices/pci/0000:18:00.1/net/eth1/type --
1
-- sys/devices/pci/0000:18:00.1/net/eth1/dev_port --
0
-- sys/devices/pci/0000:18:00.1/physfn -> ../0000:18:00.0 --
-- sys/devices/pci/0000:19:00.0/infiniband/mlx5_3/device -> ../.. --
-- sys/devices/pci/0000:19:00.0/infiniband/mlx5_3/ports/1/link_layer --
InfiniBand
-- sys/devices/pci/0000:19:00.0/net/ib0/type --
32
`

// prioritiesOf is the configuration of the netdev of nodeWithPriorities.
var prioritiesOf = []string{
	`rdma_port_pfc_enabled{device="mlx5_0",netdev="eth0",port="1",priority="3"} 1`,
	`rdma_port_pfc_enabled_priorities{device="mlx5_0",netdev="eth0",port="1"} 1`,
	`rdma_port_pfc_capable_priorities{device="mlx5_0",netdev="eth0",port="1"} 8`,
	`rdma_port_dcb_pfc_frames_total{device="mlx5_0",direction="transmit",netdev="eth0",port="1",priority="3"} 12`,
	`rdma_port_dcb_pfc_frames_total{device="mlx5_0",direction="receive",netdev="eth0",port="1",priority="3"} 3`,
	`rdma_port_qos_info{dcbx="host,cee,ieee",device="mlx5_0",netdev="eth0",port="1",trust="dscp"} 1`,
	`rdma_port_priority_info{device="mlx5_0",dscps="26",netdev="eth0",port="1",priority="3"} 1`,
}

// qosSamples reads once and emits.
func qosSamples(t *testing.T, c *shared.Collector, h *host.Host) ([]string, snapshot.Node) {
	t.Helper()
	n, err := collectortest.ReadOnce(t.Context(), c.Read, h)
	if err != nil {
		t.Fatal(err)
	}
	return collectortest.Samples(c.Descs, func(s metric.Sink) { c.Emit(&n, s) }), n
}

func TestPrioritiesOfPhysicalEthernetPorts(t *testing.T) {
	got, n := qosSamples(t, New(shared.NewState(shared.Options{})), played.Machine(t, nodeWithPriorities))
	if !slices.Equal(got, prioritiesOf) || len(n.Issues) != 0 {
		t.Errorf("%s\nissues %v", strings.Join(got, "\n"), n.Issues)
	}
	if got, _ := qosSamples(t, New(shared.NewState(shared.Options{})), played.Machine(t, "")); got != nil {
		t.Errorf("a host without RDMA: %q", got)
	}
	New(shared.NewState(shared.Options{})).Emit(&snapshot.Node{}, nil) // before the first reading
}

func TestOperatorsWordOnRoCE(t *testing.T) {
	conf, err := site.Parse([]byte("pins:\n  - match: {device: mlx5_0}\n    roce: lossless\n  - match: {link_layer: ethernet, netdev: eth0}\n    congestion_control: dcqcn\n  - match: {device: mlx5_3}\n    roce: lossy\n"))
	if err != nil {
		t.Fatal(err)
	}
	var store site.Store
	c, h := New(shared.NewState(shared.Options{Site: &store})), played.Machine(t, nodeWithPriorities)
	pins := func() (out []string) {
		got, _ := qosSamples(t, c, h)
		return slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "rdma_port_roce_pin_info") })
	}
	if got := pins(); len(got) != 0 {
		t.Errorf("trust without an answer: %q", got)
	}
	store.Replace(conf)
	if got, want := pins(), []string{
		`rdma_port_roce_pin_info{congestion_control="dcqcn",device="mlx5_0",port="1",roce="lossless"} 1`,
	}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// countedDCB counts requests, and lets the test delay or change them.
type countedDCB struct {
	host.DCB
	asked atomic.Int64
	wait  atomic.Int64 // time.Duration
	err   error
}

func (d *countedDCB) IEEE(ctx context.Context, netdev string) (dcb.Config, error) {
	d.asked.Add(1)
	time.Sleep(time.Duration(d.wait.Load()))
	if d.err != nil {
		return dcb.Config{}, d.err
	}
	return d.DCB.IEEE(ctx, netdev)
}

// carrierFiles simulates carrier changes.
type carrierFiles struct {
	host.Files
	ups int
}

func (f *carrierFiles) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if name == "carrier_up_count" {
		return fmt.Appendf(buf[:0], "%d\n", f.ups), nil
	}
	return f.Files.ReadIn(dir, name, buf)
}

// slowNode is nodeWithPriorities with the test's clock.
func slowNode(t *testing.T) (*host.Host, *countedDCB, *carrierFiles) {
	h := played.Machine(t, nodeWithPriorities)
	d, f := &countedDCB{DCB: h.DCB}, &carrierFiles{h.Files, 1}
	h.DCB, h.Files, h.Now, h.Budget = d, f, time.Now, access.NewBudget(time.Now)
	return h, d, f
}

func TestPrioritiesAreAskedForEachMinuteAndWhenTheLinkChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d, f := slowNode(t)
		c := New(shared.NewState(shared.Options{}))
		rounds := func(n int) int {
			d.asked.Store(0)
			for range n {
				if got, _ := qosSamples(t, c, h); !slices.Equal(got, prioritiesOf) {
					t.Fatalf("%q", got)
				}
				time.Sleep(10 * time.Second)
			}
			return int(d.asked.Load())
		}
		if n := rounds(60); n != 10 {
			t.Errorf("%d requests in ten minutes", n)
		}
		time.Sleep(time.Minute)
		rounds(1)
		if n := rounds(3); n != 0 {
			t.Errorf("%d requests within a minute", n)
		}
		f.ups++
		if n := rounds(2); n != 1 {
			t.Errorf("%d requests after the carrier came", n)
		}
	})
}

// TestDriverWithoutDCB: two requests, none while nothing changes, and no issue.
func TestDriverWithoutDCB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d, f := slowNode(t)
		d.err = &access.Error{Op: "ask", Path: "dcb/eth0/ieee", Err: syscall.EOPNOTSUPP}
		c := New(shared.NewState(shared.Options{Include: regexp.MustCompile("^mlx5_0$")}))
		rounds := func() {
			for range 10 {
				got, n := qosSamples(t, c, h)
				if got != nil || len(n.Issues) != 0 {
					t.Fatalf("%q, issues %v", got, n.Issues)
				}
				time.Sleep(time.Minute)
			}
		}
		if rounds(); d.asked.Load() != 2 {
			t.Errorf("asked %d times", d.asked.Load())
		}
		f.ups++
		if rounds(); d.asked.Load() != 4 {
			t.Errorf("asked %d times after the link changed", d.asked.Load())
		}
	})
}

func TestRefusedPrioritiesAreReported(t *testing.T) {
	for errno, reason := range map[syscall.Errno]string{
		syscall.EINVAL: "invalid", syscall.EPERM: "permission", syscall.EIO: "io",
	} {
		t.Run(reason, func(t *testing.T) {
			h := played.Machine(t, nodeWithPriorities)
			h.DCB = &countedDCB{err: &access.Error{Op: "ask", Path: "dcb/eth0/ieee", Err: errno}}
			got, n := qosSamples(t, New(shared.NewState(shared.Options{})), h)
			if got != nil || len(n.Issues) != 1 || n.Issues[0].Reason != reason || n.Issues[0].Source != "dcb" ||
				n.Issues[0].Device != "mlx5_0" {
				t.Errorf("%s: %q, %+v", errno, got, n.Issues)
			}
		})
	}
}

// TestPrioritiesWhileRTNLIsHeld: the previous values are served, and no second request is made.
func TestPrioritiesWhileRTNLIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d, _ := slowNode(t)
		c := New(shared.NewState(shared.Options{}))
		qosSamples(t, c, h)
		h.Budget = nil
		d.wait.Store(int64(3 * time.Minute))
		for range 4 { // three times it is inside, then is the back-off
			time.Sleep(time.Minute)
			got, n := qosSamples(t, c, h)
			if !slices.Equal(got, prioritiesOf) || len(n.Issues) != 1 {
				t.Errorf("%q, issues %v", got, n.Issues)
			}
		}
		if n := d.asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		d.wait.Store(0)
		time.Sleep(5 * time.Minute)
		if got, n := qosSamples(t, c, h); !slices.Equal(got, prioritiesOf) || len(n.Issues) != 0 || d.asked.Load() != 3 {
			t.Errorf("afterwards: %q, issues %v, asked %d times", got, n.Issues, d.asked.Load())
		}
	})
}

// noPorts hides the ports of devices.
type noPorts struct {
	host.Files
	hidden bool
}

func (f *noPorts) List(dir string) ([]string, error) {
	if f.hidden && strings.HasSuffix(dir, "/ports") {
		return nil, &access.Error{Op: "list", Path: dir, Err: syscall.ENOENT}
	}
	return f.Files.List(dir)
}

func TestPortsThatComeAfterTheirDevice(t *testing.T) {
	h := played.Machine(t, nodeWithPriorities)
	f := &noPorts{h.Files, true}
	h.Files = f
	c := New(shared.NewState(shared.Options{}))
	if got, n := qosSamples(t, c, h); got != nil || len(n.Issues) != 0 {
		t.Errorf("%q, issues %v", got, n.Issues)
	}
	f.hidden = false
	if got, _ := qosSamples(t, c, h); !slices.Equal(got, prioritiesOf) {
		t.Errorf("%q", got)
	}
}

const ofedFiles = `-- sys/devices/pci/0000:18:00.0/net/eth0/qos/trust --
pcp
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_np/cnp_dscp --
48
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_np/cnp_802p_prio --
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_np/enable/3 --
1
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_np/enable/4 --
1
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_np/enable/5 --
0
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_rp/enable/3 --
-- sys/devices/pci/0000:18:00.0/net/eth0/ecn/roce_rp/enable/4 !EIO --
-- sys/devices/pci/0000:18:00.0/infiniband/mlx5_0/tc/1/traffic_class --
src_ip=10.0.0.0/8,tclass=96
Global tclass=106
`

// TestOFEDFiles: an empty file is a firmware error, and no value.
func TestOFEDFiles(t *testing.T) {
	got, n := qosSamples(t, New(shared.NewState(shared.Options{})), played.Machine(t, nodeWithPriorities+ofedFiles))
	want := append(slices.Clone(prioritiesOf[:5]),
		`rdma_port_qos_info{dcbx="host,cee,ieee",device="mlx5_0",netdev="eth0",port="1",trust="pcp"} 1`,
		`rdma_port_congestion_notification_enabled{device="mlx5_0",netdev="eth0",point="notification",port="1",priority="3"} 1`,
		`rdma_port_congestion_notification_enabled{device="mlx5_0",netdev="eth0",point="notification",port="1",priority="5"} 0`,
		`rdma_port_cnp_info{device="mlx5_0",dscp="48",netdev="eth0",port="1"} 1`,
		`rdma_port_traffic_class_info{device="mlx5_0",dscp="26",port="1",traffic_class="106"} 1`,
	)
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if len(n.Issues) != 1 || n.Issues[0].Source != "roce_config" || !errors.Is(n.Issues[0].Err, syscall.EIO) {
		t.Errorf("issues %v", n.Issues)
	}
}

func TestGlobalTrafficClass(t *testing.T) {
	for text, want := range map[string]any{
		"": nil, "Global tclass=106": uint64(106), "src_ip=1.1.1.1,tclass=3\nGlobal tclass=0\n": uint64(0),
		"Global tclass=256": nil, "Global tclass=": nil, "106": nil,
	} {
		if got := collectortest.Value(globalTrafficClass(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func dscpApps(leadsTo func(d int) int) (out []dcb.App) {
	for d := range allDSCPs {
		if p := leadsTo(d); p >= 0 {
			out = append(out, dcb.App{Selector: dcb.SelectorDSCP, Priority: uint8(p), Protocol: uint16(d)})
		}
	}
	return out
}

func TestPriorityInfo(t *testing.T) {
	app := func(selector, priority uint8, protocol uint16) dcb.App {
		return dcb.App{Selector: selector, Priority: priority, Protocol: protocol}
	}
	pfc := &dcb.PFC{Enabled: 1 << 3}
	for _, c := range []struct {
		name   string
		config dcb.Config
		trust  string
		want   []string // priority and its DSCPs
	}{
		{"nothing reported", dcb.Config{}, "", nil},
		{"no entry", dcb.Config{Apps: []dcb.App{}, PFC: pfc}, "pcp", nil},
		{"other entries", dcb.Config{Apps: []dcb.App{app(dcb.SelectorEthertype, 3, 0x8915)}}, "pcp", nil},
		{"default of all 64", dcb.Config{Apps: dscpApps(func(d int) int { return d >> 3 })}, "dscp", nil},
		{"default, with flow control", dcb.Config{Apps: dscpApps(func(d int) int { return d >> 3 }), PFC: pfc}, "dscp", []string{"3 24-31"}},
		{"one of 64 elsewhere", dcb.Config{Apps: dscpApps(func(d int) int {
			if d == 26 {
				return 5
			}
			return d >> 3
		}), PFC: pfc}, "dscp", []string{"3 24-25,27-31", "5 26,40-47"}},
		{"some, the rest by default in priority 0", dcb.Config{Apps: []dcb.App{app(5, 0, 8), app(5, 3, 26), app(5, 6, 48), app(5, 6, 46)}}, "dscp", []string{"3 26", "6 46,48"}},
		{"none leads to the lossless priority", dcb.Config{Apps: []dcb.App{app(5, 5, 26)}, PFC: pfc}, "dscp", []string{"3 ", "5 26"}},
		{"trust in the DSCP, and no entry", dcb.Config{Trust: []uint8{dcb.SelectorDSCP}, PFC: pfc}, "dscp", nil},
		{"of two priorities the higher", dcb.Config{Apps: []dcb.App{app(5, 3, 26), app(5, 5, 26)}}, "dscp", []string{"5 26"}},
		{"no DSCP", dcb.Config{Apps: []dcb.App{app(5, 3, 64)}}, "dscp", nil},
		{"the driver trusts the tag", dcb.Config{Apps: []dcb.App{app(5, 3, 26)}, Trust: []uint8{dcb.SelectorPCP}, PFC: pfc}, "pcp", nil},
		{"the driver trusts nothing", dcb.Config{Apps: []dcb.App{app(5, 3, 26)}, Trust: []uint8{}}, "", nil},
		{"the driver trusts both", dcb.Config{Apps: []dcb.App{app(5, 3, 26)}, Trust: []uint8{dcb.SelectorDSCP, dcb.SelectorPCP}}, "dscp", []string{"3 26"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := snapshot.NetdevQoS{Device: "d", Port: 1, Name: "n"}
			bridging(&q, &c.config)
			if q.Trust != c.trust {
				t.Errorf("trust %q", q.Trust)
			}
			got := collectortest.Samples([]*metric.Desc{priorityInfo},
				func(s metric.Sink) { (&qosEmitter{s: s, q: &q, labels: []string{"d", "1", "n"}}).priorities() })
			var want []string
			for _, w := range c.want {
				p, list, _ := strings.Cut(w, " ")
				if list != "" {
					list = fmt.Sprintf("dscps=%q,", list)
				}
				want = append(want, fmt.Sprintf(`rdma_port_priority_info{device="d",%snetdev="n",port="1",priority=%q} 1`, list, p))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestTrafficClasses(t *testing.T) {
	const ets, strict, cbs, vendor = dcb.Enhanced, dcb.Strict, dcb.CreditBased, dcb.Vendor
	identity := [snapshot.Priorities]uint64{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name string
		snapshot.Classes
		want []string // bandwidth, selection, class of the priority
	}{
		{"none set", snapshot.Classes{OfPrio: identity}, nil},
		{"mlx5's own", snapshot.Classes{Algorithm: [8]uint64{vendor, vendor, vendor, vendor, vendor, vendor, vendor, vendor}, Bandwidth: [8]uint64{100, 100, 100, 100, 100, 100, 100, 100}, OfPrio: [8]uint64{1, 0, 2, 3, 4, 5, 6, 7}}, nil},
		{"one class has all", snapshot.Classes{Algorithm: [8]uint64{ets}, Bandwidth: [8]uint64{100}}, nil},
		{"two halves", snapshot.Classes{Algorithm: [8]uint64{3: ets, 4: ets}, Bandwidth: [8]uint64{3: 50, 4: 50}, OfPrio: [8]uint64{3, 4, 3, 3, 4, 4, 4, 4}}, []string{"ratio 3 0.5"}},
		{"strict before two", snapshot.Classes{Algorithm: [8]uint64{ets, ets, strict, cbs, 9}, Bandwidth: [8]uint64{30, 70}, OfPrio: [8]uint64{0, 0, 0, 1, 0, 4, 3, 2}}, []string{"ratio 1 0.7", "info 2 strict", "info 3 cbs", "info 4 9", "class 3 1"}},
		{"a class that there is not", snapshot.Classes{Algorithm: [8]uint64{ets}, Bandwidth: [8]uint64{30}, OfPrio: [8]uint64{3: 200}}, nil},
		{"no bandwidth of its own", snapshot.Classes{Algorithm: [8]uint64{ets, ets, strict}, Bandwidth: [8]uint64{99, 0, 0}, OfPrio: [8]uint64{3: 1}}, []string{"ratio 1 0", "class 3 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := snapshot.NetdevQoS{PFC: &snapshot.PFC{Enabled: [8]bool{3: true}}, Classes: &c.Classes}
			var got []string
			line := regexp.MustCompile(`^rdma_port_(?:traffic_class_bandwidth_(ratio)|traffic_class_selection_(info)|priority_traffic_(class))\{(?:algorithm="(\w+)",)?.*(?:traffic_class|priority)="(\d)"\} (\S+)$`)
			for _, s := range collectortest.Samples(qosDescs, func(s metric.Sink) {
				e := &qosEmitter{s: s, q: &q, labels: []string{"d", "1", "n"}}
				e.priorities()
				e.classes()
			}) {
				m := line.FindStringSubmatch(s)
				if m == nil {
					t.Fatalf("%s", s)
				}
				v := m[6]
				if m[4] != "" {
					v = m[4]
				}
				got = append(got, m[1]+m[2]+m[3]+" "+m[5]+" "+v)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]uint8{
		"": nil, "5": {5}, "0-63": dscpsUpTo(63), "0-1,3,5-7": {0, 1, 3, 5, 6, 7},
	} {
		if got := ranges(numbers); got != want {
			t.Errorf("%v: %q", numbers, got)
		}
	}
}

func dscpsUpTo(n uint8) (out []uint8) {
	for d := range n + 1 {
		out = append(out, d)
	}
	return out
}
