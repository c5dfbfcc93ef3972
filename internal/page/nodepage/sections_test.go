package nodepage

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/pagetest"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
)

// TestOrderOfSections: findings come first; the topology comes before the ports only where something is wrong with it.
func TestOrderOfSections(t *testing.T) {
	gpu := func(in *Input, send string) {
		pair := accel.GDRPair{Topology: "PIX", Eligible: true, Send: send, Receive: send}
		in.Node.GDR.GPUs = []accel.GDRGPU{{
			Index: "0", PCIAddress: "0000:02:00.0", Root: "pci0000:00", Best: pair,
			Hops: []accel.PCIeHop{{Address: "0000:00:00.0"}, {Address: "0000:02:00.0"}},
		}}
		in.Node.GDR.Pairs = []accel.GDRPair{pair}
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"healthy": {func(in *Input) { gpu(in, "direct") }, "findings ports topology not-evaluated self"},
		"a port with a finding": {func(in *Input) {
			gpu(in, "direct")
			in.Report.Findings = []check.Finding{
				{Alert: "RDMAPortDown", Severity: "critical", Labels: map[string]string{"device": "mlx5_0", "port": "1"}},
			}
		}, "findings ports topology not-evaluated self"},
		"staging": {func(in *Input) { gpu(in, "staging") }, "findings topology ports not-evaluated self"},
		"a GPU with a finding": {func(in *Input) {
			gpu(in, "direct")
			in.Report.Findings = []check.Finding{
				{Alert: "RDMAGPUPCIe", Severity: "warning", Labels: map[string]string{"gpu": "0"}},
			}
		}, "findings topology ports not-evaluated self"},
	} {
		t.Run(name, func(t *testing.T) {
			in := node("mlx5_0")
			c.change(&in)
			var got []string
			for _, m := range regexp.MustCompile(`<h2 id="h-([a-z-]+)"`).FindAllStringSubmatch(render(t, in), -1) {
				got = append(got, m[1])
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestPending: pending alerts are amber, separate from firing alerts and from what is ok.
func TestPending(t *testing.T) {
	in := node("mlx5_0", "mlx5_1")
	of := func(device string) map[string]string {
		return map[string]string{"device": device, "port": "1", "severity": "warning"}
	}
	in.Report.Headline = string(page.Watching)
	in.Report.Pending = []check.Finding{
		{Alert: "RDMAPortDown", Severity: "warning", State: "pending", Labels: of("mlx5_0")},
	}
	in.Report.Findings = []check.Finding{
		{Alert: "RDMALinkDegraded", Severity: "warning", State: "pending", Labels: of("mlx5_1")},
		{Alert: "RDMALinkErrors", Severity: "warning", State: "firing", Labels: of("mlx5_1"), Diagnose: "perfquery"},
	}
	in.Alerts = []alerting.Alert{{Name: "RDMAPortDown", State: alerting.StatePending, Labels: of("mlx5_0")}}
	pagetest.Holds(t, "node", render(t, in), []string{
		`<header class="verdict watching">`, `<tr id="port-0" class="watching">`,
		"<li class=\"watching\">\n" + `<h3><svg class="i watching" width="20" height="20" aria-hidden="true"><use href="#i-watching"/></svg> <span class="sev">pending warning</span> RDMALinkDegraded`,
		"<li class=\"warning\">\n" + `<h3><svg class="i warning" width="20" height="20" aria-hidden="true"><use href="#i-warning"/></svg> <span class="sev">warning</span> RDMALinkErrors`,
		`<li class="watching"><svg class="i watching" width="20" height="20" aria-hidden="true"><use href="#i-watching"/></svg> <span class="sev">pending warning</span> <strong>RDMAPortDown`,
		`<a href="runbooks/RDMALinkErrors">Runbook</a>`, "<dt>Diagnose</dt><dd><pre><code>perfquery</code></pre></dd>",
	})
}

// TestScale: ports of one kind share a scale, which is shown next to the plot with the present value; another kind has
// its own scale.
func TestScale(t *testing.T) {
	in := node("mlx5_0", "mlx5_1", "mlx5_2")
	slow := &in.Node.InfiniBand.Devices[1].Ports[0]
	slow.Rate = new(200e9) // of 400: the scale is that of its kind
	other := &in.Node.InfiniBand.Devices[2].Ports[0]
	other.Role, other.Rate, other.ExpectedRate = "storage", new(100e9), new(100e9)
	rows := strings.Split(render(t, in), "<tr id=")[1:]
	for i, want := range []string{"max 400 Gb/s", "max 400 Gb/s", "max 100 Gb/s"} {
		if !strings.Contains(rows[i], `<small class="scale">`+want+"<") ||
			!strings.Contains(rows[i], `<small class="flat">↑ `) {
			t.Errorf("port %d: without %q or the present value: %s", i, want, rows[i])
		}
	}
	hot := in.History.Lines[moduleTemperature][PortKey{"mlx5_1", "1"}]
	hot[len(hot)-1].Value = 200
	var scales []string
	for _, m := range regexp.MustCompile(`<small class="scale">(-?\d+ to \d+ °C)<`).
		FindAllStringSubmatch(render(t, in), -1) {
		scales = append(scales, m[1])
	}
	if len(scales) != 3 || scales[0] != scales[1] || !strings.HasSuffix(scales[0], "to 205 °C") || scales[2] == scales[0] {
		t.Errorf("scales of temperature %q", scales)
	}
}

// TestRefreshWithoutScript: a browser without JavaScript loads the page again.
func TestRefreshWithoutScript(t *testing.T) {
	pagetest.Holds(t, "node", render(t, node("mlx5_0")),
		[]string{`<noscript><meta http-equiv="refresh" content="15"></noscript>`, `data-time="2026-03-02T08:00:00Z"`})
}

// TestUnknown: unknown values are grey and have a reason; n/a is for values that do not apply.
func TestUnknown(t *testing.T) {
	port := func(change func(*snapshot.Port)) func(*Input) {
		return func(in *Input) { change(&in.Node.InfiniBand.Devices[0].Ports[0]) }
	}
	const grey = `<small class="unknown">`
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"state":          {port(func(p *snapshot.Port) { p.State = nil }), grey + "unknown: port state could not be read<"},
		"rate":           {port(func(p *snapshot.Port) { p.Rate = nil }), grey + "unknown: rate not reported by the driver<"},
		"rate, down":     {port(func(p *snapshot.Port) { p.State, p.Rate = new(uint64(1)), nil }), grey + "n/a<"},
		"pause":          {func(in *Input) { in.History.Lines[pausesSwitch], in.History.Lines[pausedBySwitch] = nil, nil }, grey + "unknown: PFC pause duration not exposed by this driver<"},
		"traffic":        {func(in *Input) { in.History.Lines[transmit] = nil }, grey + "unknown: no data counters in the last round<"},
		"errors":         {func(*Input) {}, grey + "unknown: no error counters from this driver<"},
		"unsupported":    {func(in *Input) { in.Node.Optics.Cages[0].State = wire.CageUnsupported }, grey + "unknown: no transceiver data from this driver<"},
		"no cage":        {func(in *Input) { in.Node.Optics.Cages = nil }, grey + "unknown: no transceiver cage found for this port<"},
		"no transceiver": {func(in *Input) { in.Node.Optics = nil }, grey + "unknown: transceivers are not read<"},
	} {
		t.Run(name, func(t *testing.T) {
			in := node("mlx5_0")
			c.change(&in)
			pagetest.Holds(t, "node", render(t, in), []string{c.want})
		})
	}
	in := node("mlx5_0", "mlx5_1")
	in.Node.InfiniBand.Devices[0].Ports[0].LinkLayer = "InfiniBand"
	in.History.Lines[pausesSwitch], in.History.Lines[pausedBySwitch] = nil, nil
	row, _, _ := strings.Cut(strings.Split(render(t, in), "<tr id=")[1], "</tr>")
	pagetest.Holds(t, "InfiniBand port", row, []string{`data-label="PFC pause">` + grey + "n/a<"})
	for _, house := range []string{"not told", "not known", "not_judged", "judged"} {
		in.Node.InfiniBand.Devices[0].Ports[0].State = nil
		if strings.Contains(render(t, in), house) {
			t.Errorf("page has %q", house)
		}
	}
}

// TestStaleLimit: the title is that of the verdict again as soon as a round has finished.
func TestStaleLimit(t *testing.T) {
	in := node("mlx5_0")
	in.Now = in.Read.Add(3 * time.Minute)
	in.Interval = 10 * time.Minute // rounds are rare
	if html := render(t, in); strings.Contains(html, "STALE") {
		t.Error("stale within 3 intervals")
	}
}

// TestDMABUFsOfJob: the data path of a running job names the DMA-BUFs that its process keeps open.
func TestDMABUFsOfJob(t *testing.T) {
	in := node("mlx5_0")
	p := accel.Process{PID: 42, DMABUFs: []accel.DMABUFs{{Exporter: "nv_dmabuf", Buffers: 2, Bytes: 3 << 20}}}
	in.Node.GDR.Processes = []accel.Process{p}
	pair := accel.GDRPair{Topology: "PIX", Eligible: true, Send: "direct", Receive: "direct"}
	in.Node.GDR.GPUs = []accel.GDRGPU{{
		Index: "0", PCIAddress: "0000:02:00.0", Root: "pci0000:00", Best: pair,
		Hops:      []accel.PCIeHop{{Address: "0000:00:00.0"}, {Address: "0000:02:00.0"}},
		Transport: &accel.GDRTransport{State: "gdr", Reason: "dmabuf_open", Words: "words", Process: &p},
	}}
	in.Node.GDR.Pairs = []accel.GDRPair{pair}
	if text := render(t, in); !strings.Contains(text, "gdr (process 42): words; keeps 2 DMA-BUFs of GPU memory open (nv_dmabuf), 3 MiB") {
		t.Error("the page lacks the DMA-BUFs")
	}
}
