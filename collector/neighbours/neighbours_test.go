package neighbours

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// says returns a frame of a system with this name.
func says(system, port string, seconds byte, capabilities uint16) []byte {
	return lldp.Frame([6]byte{2, 0, 0, 0, 0, 9},
		lldp.TLV{Type: lldp.TypeChassisID, Value: []byte("\x07" + system + "-chassis")},
		lldp.TLV{Type: lldp.TypePortID, Value: []byte("\x05" + port)},
		lldp.TLV{Type: lldp.TypeTTL, Value: []byte{0, seconds}}, lldp.TLV{Type: lldp.TypeSystemName, Value: []byte(system)},
		lldp.TLV{Type: lldp.TypeCapabilities, Value: binary.BigEndian.AppendUint16([]byte{0, 0xff}, capabilities)})
}

// saved returns a file of networkd.
func saved(index int, frames ...[]byte) string {
	var b []byte
	for _, f := range frames {
		b = lldp.Save(b, f)
	}
	return fmt.Sprintf("-- run/systemd/netif/lldp/%d @base64 --\n%s\n", index, base64.StdEncoding.EncodeToString(b))
}

// etherPort returns an RDMA device with one Ethernet port.
func etherPort(device, address, netdev string, index int) string {
	function := "sys/devices/pci0000:00/" + address
	return collectortest.Files("sys/class/infiniband/"+device+"/ports/1/link_layer", "Ethernet",
		"sys/class/infiniband/"+device+"/board_id", "MT_1",
		function+"/vendor", "0x15b3", function+"/device", "0x1021",
		function+"/net/"+netdev+"/type", "1", function+"/net/"+netdev+"/dev_port", "0",
		function+"/net/"+netdev+"/ifindex", fmt.Sprint(index),
		function+"/net/"+netdev+"/address", fmt.Sprintf("02:00:00:00:00:%02x", index)) +
		fmt.Sprintf("-- sys/class/infiniband/%s/device -> ../../../devices/pci0000:00/%s --\n-- sys/class/net/%s -> ../../devices/pci0000:00/%s/net/%[3]s --\n",
			device, address, netdev, address)
}

const (
	bridge  = lldp.CapabilityBridge
	station = lldp.CapabilityStation
)

// linked returns the state of collectors that share these links.
func linked(o shared.Options, links *shared.CommonLinks) *shared.State {
	with := shared.NewState(o)
	with.Links = links
	return with
}

func neighboursOf(o shared.Options) *shared.Collector { return New(shared.NewState(o)) }

// farEnds reads a machine once and returns its samples.
func farEnds(t *testing.T, c *shared.Collector, h *host.Host) []string {
	t.Helper()
	n := &snapshot.Node{}
	c.Read(t.Context(), h, n, func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	out := collectortest.Samples(c.Descs, func(s metric.Sink) { c.Emit(n, s) })
	for _, i := range n.Issues {
		out = append(out, i.Source+" "+i.Reason)
	}
	for _, source := range n.Pending {
		out = append(out, source+" pending")
	}
	return out
}

// labelsOf returns the labels of a port.
func labelsOf(more string) string { return `{device="mlx5_0",netdev="eth0",port="1"` + more + `} ` }

func TestNeighbours(t *testing.T) {
	const (
		leaf = `rdma_port_neighbour_info{device="mlx5_0",netdev="eth0",port="1",port_id="swp1",source="lldp",system="leaf-1"} 1`
		one  = `rdma_port_lldp_neighbours{device="mlx5_0",netdev="eth0",port="1"} 1`
	)
	cable := func(system, port string) string {
		return `rdma_port_cabling_info{device="mlx5_0",netdev="eth0",port="1",` + port + `system="` + system + `"} 1`
	}
	miscabled := func(v int) string {
		return fmt.Sprintf(`rdma_port_miscabled{device="mlx5_0",netdev="eth0",port="1"} %d`, v)
	}
	for _, c := range []struct {
		name, files, config string
		want                []string
	}{
		{"nobody tells", "", "", nil},
		{"networkd", saved(5, says("leaf-1", "swp1", 120, bridge)), "", []string{leaf, one}},
		{"a switch among others", saved(5, says("dpu", "p0", 120, station), says("leaf-1", "swp1", 120, bridge), says("dpu-2", "p0", 120, station)), "", []string{leaf, strings.TrimSuffix(one, "1") + "3"}},
		{"the host itself, and a farewell", saved(5, says("gpu-1.example.com", "eth0", 120, station), says("leaf-9", "swp1", 0, bridge), says("leaf-1", "swp1", 120, bridge)), "", []string{leaf, one}},
		{
			"a frame that is garbled, and one that is cut",
			saved(5, []byte("nonsense"), says("leaf-1", "swp1", 120, bridge)), "",
			[]string{leaf, one, "lldp malformed"},
		},
		{"a file that is garbled", "-- run/systemd/netif/lldp/5 --\nno\n", "", []string{"lldp malformed"}},
		{"a file that may not be read", "-- run/systemd/netif/lldp/5 !EACCES --\n", "", []string{"lldp permission"}},
		{
			"the cabling only", "", "{match: {device: mlx5_0}, system: leaf-1, port_id: swp1}",
			[]string{strings.Replace(leaf, "lldp", "cabling", 1), cable("leaf-1", `port_id="swp1",`)},
		},
		{
			"both agree: a domain, upper case, a port that is not configured", saved(5, says("leaf-1", "swp1", 120, bridge)),
			"{match: {hostname: gpu-1, netdev: eth0}, system: LEAF-1.example.com}",
			[]string{leaf, one, cable("LEAF-1.example.com", ""), miscabled(0)},
		},
		{
			"by its chassis", saved(5, says("leaf-1", "swp1", 120, bridge)),
			"{match: {board_id: MT_1}, system: leaf-1-chassis, port_id: SWP1}",
			[]string{leaf, one, cable("leaf-1-chassis", `port_id="SWP1",`), miscabled(0)},
		},
		{
			"another port", saved(5, says("leaf-1", "swp1", 120, bridge)),
			"{match: {device: mlx5_0}, system: leaf-1, port_id: swp2}",
			[]string{leaf, one, cable("leaf-1", `port_id="swp2",`), miscabled(1)},
		},
		{
			"another domain", saved(5, says("leaf-1.a", "swp1", 120, bridge)), "{match: {device: mlx5_0}, system: leaf-1.b}",
			[]string{strings.Replace(leaf, "leaf-1", "leaf-1.a", 1), one, cable("leaf-1.b", ""), miscabled(1)},
		},
		{"of another host", "", "{match: {hostname: gpu-2, device: mlx5_0}, system: leaf-1}", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &site.Store{}
			if c.config != "" {
				conf, err := site.Parse([]byte("cabling: [" + c.config + "]"))
				if err != nil {
					t.Fatal(err)
				}
				store.Replace(conf)
			}
			h := played.Machine(t, etherPort("mlx5_0", "0000:18:00.0", "eth0", 5)+c.files)
			got := farEnds(t, neighboursOf(shared.Options{Hostname: "gpu-1", Site: store}), h)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// networkd is a systemd-networkd that answers with frames or an error.
type networkd struct {
	frames []byte
	err    error
	asked  []string
}

func (n *networkd) LLDPNeighbours(_ context.Context, netdev string, index uint64) ([]byte, error) {
	n.asked = append(n.asked, fmt.Sprint(netdev, " ", index))
	return n.frames, n.err
}

// TestNetworkdAnswers: an answer of networkd takes precedence over a file, which may be of an earlier version. Without
// one the file is read.
func TestNetworkdAnswers(t *testing.T) {
	info := func(system string) []string {
		return []string{
			`rdma_port_neighbour_info` + labelsOf(`,port_id="swp1",source="lldp",system="`+system+`"`) + "1",
			`rdma_port_lldp_neighbours` + labelsOf("") + "1",
		}
	}
	query := func(err error) error { return &access.Error{Op: "query", Path: "socket", Err: err} }
	for _, c := range []struct {
		name string
		networkd
		want []string
	}{
		{"an answer", networkd{frames: lldp.Save(nil, says("leaf-1", "swp1", 120, bridge))}, info("leaf-1")},
		{"no neighbours", networkd{}, nil},
		{"not active", networkd{err: query(syscall.ENOENT)}, info("old")},
		{"an earlier version", networkd{err: query(syscall.EOPNOTSUPP)}, info("old")},
		{"no permission", networkd{err: query(syscall.EACCES)}, []string{"lldp permission"}},
		{"no answer", networkd{err: query(access.ErrLate)}, []string{"lldp late"}},
		{"a malformed answer", networkd{err: query(access.ErrMalformed)}, []string{"lldp malformed"}},
		{
			"a neighbour without an ID",
			networkd{frames: lldp.Save(lldp.Save(nil, lldp.Frame([6]byte{})), says("leaf-1", "swp1", 120, bridge))},
			append(info("leaf-1"), "lldp malformed"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := played.Machine(
				t,
				etherPort("mlx5_0", "0000:18:00.0", "eth0", 5)+saved(5, says("old", "swp1", 120, bridge)),
			)
			h.Networkd = &c.networkd
			n := neighboursOf(shared.Options{})
			for range 2 { // a failure is reported until the next query
				if got := farEnds(t, n, h); !slices.Equal(got, c.want) {
					t.Errorf("%q\nwant %q", got, c.want)
				}
			}
			if !slices.Equal(c.asked, []string{"eth0 5"}) {
				t.Errorf("asked for %q", c.asked)
			}
		})
	}
}

// TestOwnCable: two connected ports of one host have no neighbour.
func TestOwnCable(t *testing.T) {
	own := lldp.Frame([6]byte{2, 0, 0, 0, 0, 6},
		lldp.TLV{Type: lldp.TypeChassisID, Value: []byte("\x04\x02\x00\x00\x00\x00\x06")},
		lldp.TLV{Type: lldp.TypePortID, Value: []byte("\x03\x02\x00\x00\x00\x00\x06")},
		lldp.TLV{Type: lldp.TypeTTL, Value: []byte{0, 120}})
	h := played.Machine(t,
		etherPort("mlx5_0", "0000:18:00.0", "eth0", 5)+etherPort("mlx5_1", "0000:19:00.0", "eth1", 6)+saved(5, own))
	if got := farEnds(t, neighboursOf(shared.Options{}), h); got != nil {
		t.Error(got)
	}
}

// TestSubnet: both ends of an InfiniBand link are queried if permitted; settings enabled at both are evidence for the
// link.
func TestSubnet(t *testing.T) {
	port := strings.Replace(etherPort("mlx5_0", "0000:18:00.0", "ib0", 5), "Ethernet", "InfiniBand", 1)
	answer := func(description string) string {
		return "-- subnet/mlx5_0/1/link --\nown_widths: 0x13\nown_speeds: 0x7f\nfar_widths: 0x13\nfar_speeds: 0x3f\nfar_type: 2\nfar_port: 31\nfar_guid: b83f:d203:00a1:c0de\nfar_description: " + description + "\n"
	}
	of := func(system string) []string {
		info := `rdma_port_neighbour_info{device="mlx5_0",port="1",port_id="31",source="subnet",system="` + system + `"} 1`
		return slices.Concat([]string{info}, enabled("own", "5e+10"), enabled("neighbour", "2.5e+10"))
	}
	for _, c := range []struct {
		name, files string
		ask         bool
		common      float64 // Gb/s
		want        []string
	}{
		{"a switch", answer("MF0;ib-leaf-1:MQM9700/U1"), true, 200, of("ib-leaf-1")},
		{"one without a management system", answer("Quantum Mellanox Technologies"), true, 200, of("Quantum Mellanox Technologies b83f:d203:00a1:c0de")},
		{"a host", answer("gpu-2 HCA-1"), true, 200, of("gpu-2 HCA-1")},
		{"not permitted by the operator", answer("x"), false, 0, nil},
		{"not permitted by the host", "-- subnet/mlx5_0/1/link !EACCES --\n", true, 0, []string{"subnet permission"}},
		{"no answer", "-- subnet/mlx5_0/1/link !ETIMEDOUT --\n", true, 0, []string{"subnet io"}},
		{"a link that is down", "-- subnet/mlx5_0/1/link --\nown_widths: 0x3\nown_speeds: 0x7f\n", true, 0, enabled("own", "5e+10")},
		{"no umad", "", true, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			links := shared.NewCommonLinks()
			n := New(linked(shared.Options{AskSubnet: c.ask}, links))
			h := played.Machine(t, port+c.files)
			slices.Sort(c.want)
			for range 2 { // a failure is reported until the next query
				if got := farSorted(t, n, h); !slices.Equal(got, c.want) {
					t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
			devices := []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1}}}}
			links.Of(devices)
			p := devices[0].Ports[0]
			if c.common == 0 && p.CommonRate != nil ||
				c.common != 0 && (counters.ValueOf(p.CommonRate) != c.common*1e9 || counters.ValueOf(p.CommonLanes) != 4) {
				t.Errorf("%v b/s over %v lanes", counters.ValueOf(p.CommonRate), counters.ValueOf(p.CommonLanes))
			}
		})
	}
}

// tape is a host with the frames of a test.
type tape struct {
	joined chan []string
	heard  func(netdev string, frame []byte)
	err    error
}

func (p *tape) Receive(
	ctx context.Context, netdevs []string, under func(int, func()) error, listening func(), each func(string, []byte),
) error {
	if p.err != nil {
		return p.err
	}
	if err := under(3*len(netdevs), func() {}); err != nil {
		return err
	}
	p.heard = each
	listening()
	p.joined <- netdevs
	<-ctx.Done()
	return nil
}

// TestHeard: received frames take precedence over those saved by networkd, the most recent switch over others, and
// nothing outlives its TTL.
func TestHeard(t *testing.T) {
	h := played.Machine(
		t,
		etherPort("mlx5_0", "0000:18:00.0", "eth0", 5)+saved(5, says("old", "swp1", 120, bridge)),
	)
	synctest.Test(t, func(t *testing.T) {
		h := *h
		h.RTNL, h.Turns, h.Now = access.NewRTNL(), access.NewTurns(), time.Now
		p := &tape{joined: make(chan []string)}
		h.LLDP = p
		c := neighboursOf(shared.Options{ListenLLDP: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx, &h) }()
		begun := time.Now()
		is := func(system string, n int) {
			t.Helper()
			want := []string{
				fmt.Sprintf(`rdma_port_neighbour_info%s1`, labelsOf(`,port_id="swp1",source="lldp",system="`+system+`"`)),
				fmt.Sprintf(`rdma_port_lldp_neighbours%s%d`, labelsOf(""), n),
			}
			if time.Since(begun) < firstFrameTimeout {
				want = append(want, "lldp pending")
			}
			if got := farEnds(t, c, &h); !slices.Equal(got, want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		is("old", 1)
		if netdevs := <-p.joined; !slices.Equal(netdevs, []string{"eth0"}) {
			t.Fatal(netdevs)
		}
		p.heard("eth0", says("leaf-1", "swp1", 60, bridge))
		p.heard("eth0", []byte("nonsense"))
		is("leaf-1", 1)
		time.Sleep(time.Second)
		p.heard("eth0", says("dpu", "swp1", 60, station))
		is("leaf-1", 2)
		p.heard("eth0", says("leaf-2", "swp1", 10, bridge))
		is("leaf-2", 3)
		p.heard("eth0", says("dpu", "swp1", 0, station))
		is("leaf-2", 2)
		time.Sleep(10 * time.Second)
		is("leaf-1", 1)
		time.Sleep(time.Minute)
		is("old", 1)
		for i := range 3 * mostNeighbours {
			p.heard("eth0", says(fmt.Sprintf("flood-%d", i), "swp1", 60, bridge))
			time.Sleep(time.Millisecond)
		}
		is("flood-383", mostNeighbours)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestFloodDoesNotSilence: with a table full of forged frames with a TTL of 18 hours, a switch that keeps sending is
// still reported.
func TestFloodDoesNotSilence(t *testing.T) {
	frame := func(system string, seconds uint16) []byte {
		return lldp.Frame([6]byte{2}, lldp.TLV{Type: lldp.TypeChassisID, Value: []byte("\x07" + system)},
			lldp.TLV{Type: lldp.TypePortID, Value: []byte("\x07p")},
			lldp.TLV{Type: lldp.TypeTTL, Value: binary.BigEndian.AppendUint16(nil, seconds)})
	}
	h, now := newLLDPNeighbours(), time.Unix(1e9, 0)
	flood := func(from, n int) {
		for i := range n {
			h.note("eth0", frame(fmt.Sprint("forged-", from+i), 65535), now)
		}
	}
	flood(0, mostNeighbours)
	for minute := range 10 {
		now = now.Add(30 * time.Second)
		h.note("eth0", frame("leaf-1", 120), now)
		now = now.Add(30 * time.Second)
		flood((1+minute)*mostNeighbours, mostNeighbours-1) // all the places but one
		ends := h.of("eth0", now)
		if !slices.ContainsFunc(ends, func(e farEnd) bool { return e.System == "leaf-1" }) || len(ends) != mostNeighbours {
			t.Fatalf("minute %d: the switch is not among the %d that are heard", minute, len(ends))
		}
	}
}

// TestNotHeardNeeds: another network namespace has another remedy than a missing capability.
func TestNotHeardNeeds(t *testing.T) {
	for _, c := range []struct {
		err   error
		needs string
	}{{syscall.EPERM, "CAP_NET_RAW"}, {access.ErrOtherNetwork, "network namespace of the host"}} {
		t.Run(c.needs, func(t *testing.T) {
			h := played.Machine(t, etherPort("mlx5_0", "0000:18:00.0", "eth0", 5))
			h.LLDP = &tape{err: &access.Error{Op: "listen to", Path: "LLDP", Err: c.err}}
			n := neighboursOf(shared.Options{ListenLLDP: true})
			collectortest.Collect(t, h, n.Descs, n.Read, n.Emit) // the netdevs to hear
			if err := n.Run(t.Context(), h); !errors.Is(err, c.err) {
				t.Error(err)
			}
			if got, _ := collectortest.Collect(t, h, n.Descs, n.Read, n.Emit); len(got.Issues) != 1 ||
				got.Issues[0].Reason != string(access.Permission) ||
				!strings.Contains(got.Issues[0].Needs, c.needs) {
				t.Errorf("%v: %+v", c.err, got.Issues)
			}
		})
	}
}

// TestNotHeard: a denied permission is reported in each round, and reception resumes once permitted.
func TestNotHeard(t *testing.T) {
	h := played.Machine(t, etherPort("mlx5_0", "0000:18:00.0", "eth0", 5))
	p := &tape{joined: make(chan []string, 1), err: &access.Error{Op: "listen to", Path: "LLDP", Err: syscall.EPERM}}
	h.LLDP = p
	c := neighboursOf(shared.Options{ListenLLDP: true})
	if got := farEnds(t, c, h); !slices.Equal(got, []string{"lldp pending"}) {
		t.Error(got)
	}
	if err := c.Run(t.Context(), h); !errors.Is(err, syscall.EPERM) {
		t.Error(err)
	}
	if got := farEnds(t, c, h); !slices.Equal(got, []string{"lldp permission"}) {
		t.Error(got)
	}
	p.err = nil
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx, h) }()
	<-p.joined
	if got := farEnds(t, c, h); !slices.Equal(got, []string{"lldp pending"}) {
		t.Error(got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := neighboursOf(shared.Options{}).Run(t.Context(), h); err != nil {
		t.Error(err)
	}
}

func FuzzSavedFrames(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00ab\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xffab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, whole := savedFrames(b)
		n := 0
		for _, frame := range frames {
			n += 8 + len(frame)
		}
		if n > len(b) || whole && n != len(b) {
			t.Fatalf("%d bytes of %d, %v", n, len(b), whole)
		}
	})
}
