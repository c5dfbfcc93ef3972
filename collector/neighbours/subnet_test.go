package neighbours

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/infiniband"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/test/played"
)

// infinibandPort returns an RDMA device with one InfiniBand port, and the answers received over it.
func infinibandPort(answers ...string) string {
	return strings.Replace(etherPort("mlx5_0", "0000:18:00.0", "ib0", 5), "Ethernet", "InfiniBand", 1) +
		strings.Join(answers, "")
}

const (
	farLink = "-- subnet/mlx5_0/1/link --\nown_widths: 0x13\nown_speeds: 0x7f\nsm_lid: 1\nfar_widths: 0x13\nfar_speeds: 0x7f\nfar_type: 2\nfar_port: 31\nfar_lid: 5\n" +
		"far_guid: b83f:d203:00a1:c0de\nfar_description: MF0;ib-leaf-1:MQM9700/U1\n"
	farAgent = "-- subnet/mlx5_0/1/agent/5-31 --\nsymbol_error: 70000\nlink_error_recovery: 2\nlink_downed: 3\nport_rcv_errors: 4\nport_xmit_discards: 5\nport_xmit_wait: 6\nport_xmit_data: 7\nVL15_dropped: 8\n"
	master   = "-- subnet/mlx5_0/1/manager/1 --\nstate: 3\npriority: 14\nactivity: 4711\nguid: b83f:d203:00a1:0001\n"
)

// enabled returns the series of an end without other settings, as in older captures.
func enabled(end, rate string) []string {
	at := `{device="mlx5_0",end="` + end + `",port="1",setting="enabled"} `
	return []string{"rdma_port_link_end_rate_bytes_per_second" + at + rate, "rdma_port_link_end_width_lanes" + at + "4"}
}

// TestEnds: which end is configured low, and no active setting while the link is down.
func TestEnds(t *testing.T) {
	const own = "own_widths: 0x13\nown_speeds: 0x7f\nown_supported_widths: 0x13\nown_supported_speeds: 0x7f\n"
	series := func(end, setting, rate, lanes string) []string {
		at := `{device="mlx5_0",end="` + end + `",port="1",setting="` + setting + `"} `
		return []string{"rdma_port_link_end_rate_bytes_per_second" + at + rate, "rdma_port_link_end_width_lanes" + at + lanes}
	}
	ours := slices.Concat(series("own", "supported", "5e+10", "4"), series("own", "enabled", "5e+10", "4"))
	for _, c := range []struct {
		name, answers string
		want          []string
	}{
		{"the link is down", own, ours},
		{
			"the switch is set to 2x and HDR",
			own + "own_active_widths: 0x10\nown_active_speeds: 0x20\nfar_widths: 0x11\nfar_speeds: 0x3f\nfar_supported_widths: 0x13\nfar_supported_speeds: 0x7f\nfar_active_widths: 0x10\nfar_active_speeds: 0x20\n" +
				"far_type: 2\nfar_port: 31\nfar_guid: b83f:d203:00a1:c0de\nfar_description: MF0;ib-leaf-1:MQM9700/U1\n",
			slices.Concat(ours, series("own", "active", "1.25e+10", "2"), series("neighbour", "supported", "5e+10", "4"),
				series("neighbour", "enabled", "1.25e+10", "2"), series("neighbour", "active", "1.25e+10", "2"),
				[]string{`rdma_port_neighbour_info{device="mlx5_0",port="1",port_id="31",source="subnet",system="ib-leaf-1"} 1`}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := farSorted(t, neighboursOf(shared.Options{AskSubnet: true}),
				played.Machine(t, infinibandPort("-- subnet/mlx5_0/1/link --\n"+c.answers)))
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestFarFEC: the FEC of the far end, with the lanes of the link, and without counters that have reached their end.
func TestFarFEC(t *testing.T) {
	fec := "-- subnet/mlx5_0/1/fec/5-31 --\nmode: RS(544,514) PLR\nsync_header_errors: 0\n" +
		"corrected_symbols/lane0: 7\ncorrected_symbols/lane1: 4294967295\ncorrected_symbols/lane2: 0\n" +
		"corrected_symbols: 4294967295\ncorrected_blocks: 5\nuncorrectable_blocks: 0\n"
	link := strings.Replace(farLink, "sm_lid: 1\n", "own_active_widths: 0x10\nown_active_speeds: 0x40\n", 1) // 2X
	const port = `{device="mlx5_0",port="1"} `
	want := []string{
		`rdma_port_neighbour_fec_corrected_blocks_total` + port + `5`,
		`rdma_port_neighbour_fec_info{device="mlx5_0",mode="RS(544,514) PLR",port="1"} 1`,
		`rdma_port_neighbour_fec_lane_corrected_symbols_total{device="mlx5_0",lane="0",port="1"} 7`,
		`rdma_port_neighbour_fec_uncorrectable_blocks_total` + port + `0`,
	}
	got := farSorted(
		t,
		neighboursOf(shared.Options{AskSubnet: true}),
		played.Machine(t, infinibandPort(link, farAgent, fec)),
	)
	got = slices.DeleteFunc(got, func(l string) bool { return !strings.Contains(l, "_fec_") })
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestHalfRateCards: the expectation of a card that cannot combine its width and speed is the rate of its name.
func TestHalfRateCards(t *testing.T) {
	const (
		hdr100 = "ConnectX-6 VPI adapter card, 100Gb/s (HDR100, EDR IB and 100GbE), dual-port QSFP56"
		hdr    = "ConnectX-6 VPI adapter card, HDR IB (200Gb/s) and 200GbE, single-port QSFP56"
		ndr200 = "NVIDIA ConnectX-7 HHHL adapter Card, 200GbE / NDR200 IB, Dual-port QSFP112"
		upTo4X = 0x13
		twoX   = 0x10
		toHDR  = 0x3f
		toNDR  = 0x7f
		toEDR  = 0x1f
	)
	card := func(name string) string {
		data := base64.StdEncoding.EncodeToString(pci.VPD{Identifier: name}.Bytes())
		return "-- sys/devices/pci0000:00/0000:18:00.0/class --\n0x020700\n-- sys/devices/pci0000:00/0000:18:00.0/vpd @base64 --\n" + data + "\n"
	}
	const unread = "-- sys/devices/pci0000:00/0000:18:00.0/class --\n0x020700\n-- sys/devices/pci0000:00/0000:18:00.0/vpd !EACCES --\n"
	for _, c := range []struct {
		name, card     string
		own            int // speeds of the card
		widths, speeds int // of the far end
		active         float64
		rate           float64 // Gb/s
		lanes          uint64  // 0: not expected
	}{
		{"HDR100 runs at 2x HDR", card(hdr100), toHDR, upTo4X, toHDR, 100, 100, 0},
		{"HDR100 on half its lanes", card(hdr100), toHDR, upTo4X, toHDR, 50, 100, 2},
		{"HDR100 of a switch of EDR", card(hdr100), toHDR, upTo4X, toEDR, 50, 100, 4},
		{"HDR100 and a switch of NDR", card(hdr100), toHDR, upTo4X, toNDR, 50, 100, 2},
		{"HDR100 on a port that is split", card(hdr100), toHDR, twoX, toHDR, 50, 100, 2},
		{"HDR at half", card(hdr), toHDR, upTo4X, toHDR, 100, 200, 4},
		{"NDR200 runs at 2x NDR", card(ndr200), toNDR, upTo4X, toNDR, 200, 200, 0},
		{"NDR200 at half", card(ndr200), toNDR, upTo4X, toNDR, 100, 200, 2},
		{"NDR200 of a switch of HDR", card(ndr200), toNDR, upTo4X, toHDR, 100, 200, 4},
		{"a name that cannot be read", unread, toHDR, upTo4X, toHDR, 100, 200, 4},
		{"a name that is not there", "", toHDR, upTo4X, toHDR, 100, 200, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := fmt.Sprintf("-- subnet/mlx5_0/1/link --\nown_widths: 0x13\nown_speeds: %#x\nfar_widths: %#x\nfar_speeds: %#x\nfar_type: 2\nfar_port: 31\n",
				c.own, c.widths, c.speeds)
			links := shared.NewCommonLinks()
			farEnds(t, New(linked(shared.Options{AskSubnet: true}, links)),
				played.Machine(t, infinibandPort(answers)+c.card))
			bits := c.active * 1e9
			d := &snapshot.Device{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, Rate: &bits}}}
			links.Of([]snapshot.Device{*d})
			e := expect.Of([]expect.Link{infiniband.LinksOf(d, &d.Ports[0], expect.Kind{}, site.Settings{})[0].Link},
				func(string) expect.Mark { return expect.Mark{} })[0]
			if e.RateSource != expect.LinkPartner || e.Rate != c.rate*1e9 || e.Lanes != c.lanes ||
				(e.LanesSource == "") != (c.lanes == 0) {
				t.Errorf("%+v, want %v Gb/s over %d lanes", e, c.rate, c.lanes)
			}
		})
	}
}

// TestAskedOverTheSubnet: counters of the far end and the subnet manager are independent of each other.
func TestAskedOverTheSubnet(t *testing.T) {
	const at = `{device="mlx5_0",port="1"} `
	ours := enabled("own", "5e+10")
	neighbour := slices.Concat(ours, enabled("neighbour", "5e+10"),
		[]string{`rdma_port_neighbour_info{device="mlx5_0",port="1",port_id="31",source="subnet",system="ib-leaf-1"} 1`})
	far := func(values ...string) (out []string) {
		for i := 0; i < len(values); i += 2 {
			out = append(out, `rdma_port_neighbour_errors_total{device="mlx5_0",error="`+values[i]+`",port="1"} `+values[i+1])
		}
		return out
	}
	counted := append(far("symbol_errors", "70000", "link_error_recoveries", "2", "link_downed", "3", "receive_errors",
		"4", "transmit_discards", "5"), "rdma_port_neighbour_transmit_wait_ticks_total"+at+"6")
	managed := []string{
		`rdma_port_subnet_manager_info{device="mlx5_0",port="1",port_guid="b83f:d203:00a1:0001"} 1`,
		"rdma_port_subnet_manager_state_id" + at + "3",
		"rdma_port_subnet_manager_priority" + at + "14", "rdma_port_subnet_manager_activity_total" + at + "4711",
	}
	for _, c := range []struct {
		name, files string
		off         bool
		want        []string
	}{
		{name: "all", files: infinibandPort(farLink, farAgent, master), want: slices.Concat(neighbour, counted, managed)},
		{name: "not permitted by the operator", files: infinibandPort(farLink, farAgent, master), off: true},
		{name: "a switch that does not have all", files: infinibandPort(farLink, "-- subnet/mlx5_0/1/agent/5-31 --\nsymbol_error: 9\n"), want: slices.Concat(neighbour, far("symbol_errors", "9"))},
		{name: "an agent that does not answer", files: infinibandPort(farLink, "-- subnet/mlx5_0/1/agent/5-31 !ETIMEDOUT --\n", master), want: slices.Concat(neighbour, managed, []string{"subnet io"})},
		{name: "a subnet manager that does not answer", files: infinibandPort(farLink, farAgent, "-- subnet/mlx5_0/1/manager/1 !ETIMEDOUT --\n"), want: slices.Concat(neighbour, counted, []string{"subnet io"})},
		{name: "no subnet manager", files: infinibandPort(strings.Replace(farLink, "sm_lid: 1", "sm_lid: 0", 1), farAgent, master), want: slices.Concat(neighbour, counted)},
		{name: "a switch without a LID", files: infinibandPort(strings.Replace(farLink, "far_lid: 5", "far_lid: 65535", 1), farAgent, master), want: slices.Concat(neighbour, managed)},
		{name: "the far end does not answer", files: infinibandPort("-- subnet/mlx5_0/1/link !ETIMEDOUT --\n", farAgent, master), want: []string{"subnet io"}},
		{name: "a link that is down", files: infinibandPort("-- subnet/mlx5_0/1/link --\nown_widths: 0x13\nown_speeds: 0x7f\nsm_lid: 1\n", farAgent), want: ours},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := neighboursOf(shared.Options{AskSubnet: !c.off})
			got := farSorted(t, n, played.Machine(t, c.files))
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func farSorted(t *testing.T, n *shared.Collector, h *host.Host) []string {
	t.Helper()
	got := farEnds(t, n, h)
	slices.Sort(got)
	return got
}

// TestDatagramsAreCounted: each datagram is a request: five to a switch, three to its new agent, up to four for its
// FEC, one to a subnet manager.
func TestDatagramsAreCounted(t *testing.T) {
	down := "-- subnet/mlx5_0/1/link --\nown_widths: 0x13\nown_speeds: 0x7f\nsm_lid: 0\n"
	for _, c := range []struct {
		name, files string
		want        uint64
	}{
		{"a switch, its agent and a subnet manager", infinibandPort(farLink, farAgent, master), 5 + 3 + 4 + 1},
		{"an adapter without a LID", infinibandPort(strings.NewReplacer("far_type: 2", "far_type: 1", "far_lid: 5", "far_lid: 0", "sm_lid: 1", "sm_lid: 0").Replace(farLink)), 4},
		{"a link that is down", infinibandPort(down), 1},
		{"the far end does not answer", infinibandPort("-- subnet/mlx5_0/1/link !ETIMEDOUT --\n"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := played.Machine(t, c.files)
			h.Meter = &source.Meter{}
			farEnds(t, neighboursOf(shared.Options{AskSubnet: true}), h)
			var got uint64
			for _, cost := range h.Meter.Costs() {
				if cost.Source == source.Subnet {
					got += cost.Requests
				}
			}
			if got != c.want {
				t.Errorf("%d requests, want %d", got, c.want)
			}
		})
	}
}

// TestSubnetIsAskedEachMinute: queries are made each minute, and the capabilities of an agent are kept while the switch
// is the same.
func TestSubnetIsAskedEachMinute(t *testing.T) {
	h := played.Machine(t, infinibandPort(farLink, master))
	now := time.Now()
	h.Now, h.Budget = func() time.Time { return now }, nil
	answers := &collectortest.Agents{Subnet: h.Subnet}
	h.Subnet = answers
	var known []bool // of each query, whether it is the first
	first := new(host.Agent)
	answers.Answer(func(_ string, a *host.Agent) (host.IBCounters, error) {
		known = append(known, a.TransmitWait)
		a.TransmitWait = true // stands for what is kept
		first = a
		return host.IBCounters{}, nil
	})
	c := neighboursOf(shared.Options{AskSubnet: true})
	for range 9 { // each 20 s
		farEnds(t, c, h)
		now = now.Add(20 * time.Second)
	}
	if want := []bool{false, true, true}; !slices.Equal(known, want) || first.LID != 5 || first.Port != 31 {
		t.Errorf("%v, %+v; want %v", known, first, want)
	}
}

// hanging is a subnet with one port that never answers.
type hanging struct {
	host.Subnet
	device string
}

func (s hanging) Ends(ctx context.Context, device string, port int) (host.IBLink, error) {
	if device == s.device {
		select {}
	}
	return s.Subnet.Ends(ctx, device, port)
}

// TestSubnetHangs: a hung umad costs only the queries over it, and the others wait for it once, briefly.
func TestSubnetHangs(t *testing.T) {
	h := played.Machine(
		t,
		infinibandPort(farLink, farAgent, master)+etherPort("mlx5_1", "0000:19:00.0", "eth1", 6)+saved(6,
			says("leaf-9", "swp1", 120, bridge)),
	)
	h.Subnet = hanging{h.Subnet, "mlx5_0"}
	c := neighboursOf(shared.Options{AskSubnet: true})
	for range 2 {
		start := time.Now()
		got := farSorted(t, c, h)
		want := []string{
			`rdma_port_lldp_neighbours{device="mlx5_1",netdev="eth1",port="1"} 1`,
			`rdma_port_neighbour_info{device="mlx5_1",netdev="eth1",port="1",port_id="swp1",source="lldp",system="leaf-9"} 1`, "subnet stuck",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if took := time.Since(start); took > 10*subnetTimeout {
			t.Error(took)
		}
	}
}
