package nodepage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/alerting/store"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/page/pagetest"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// node returns a node with devices of one port each, a GPU beside the first, and two hours of history.
func node(names ...string) Input {
	n := &snapshot.Node{InfiniBand: &snapshot.InfiniBand{}, GDR: &accel.GDR{}, Optics: &wire.Optics{}}
	h := &History{
		From: pagetest.Now().
			Add(-span),
		To: pagetest.Now(), Step: 90 * time.Second, Lines: map[string]map[PortKey][]alerting.Point{},
		Errors: map[PortKey][]ErrorCount{},
	}
	for i, name := range names {
		address := fmt.Sprintf("%04x:01:00.0", i)
		root := fmt.Sprintf("%04x:00:00.0", i)
		n.InfiniBand.Devices = append(n.InfiniBand.Devices, snapshot.Device{Name: name, Ports: []snapshot.Port{{
			Number: 1, LinkLayer: "Ethernet", Role: "compute", State: new(uint64(4)),
			PhysicalState: new(uint64(5)), Rate: new(400e9),
			Expected: snapshot.Expected{ExpectedRate: new(400e9), ExpectedRateSource: "siblings"},
			Netdev:   []snapshot.Netdev{{Name: "eth" + name}},
		}}})
		n.GDR.NICs = append(n.GDR.NICs, accel.GDRNIC{
			Device: name, PCIAddress: address, Root: fmt.Sprintf("pci%04x:00", i), Path: []string{root, address}, Active: true,
		})
		n.Optics.Cages = append(n.Optics.Cages, wire.Cage{
			Device: name, Port: 1, Netdev: "eth" + name, State: wire.CagePresent,
			Module: &transceiver.Module{
				Vendor: "Mellanox", PartNumber: "MMA4Z00-NS", FormFactor: "OSFP", Temperature: new(48.0),
			},
		})
		for _, q := range quantities {
			if h.Lines[q.name] == nil {
				h.Lines[q.name] = map[PortKey][]alerting.Point{}
			}
			for s := range steps {
				at := h.From.Add(time.Duration(s+1) * h.Step)
				h.Lines[q.name][PortKey{name, "1"}] = append(h.Lines[q.name][PortKey{name, "1"}],
					alerting.Point{At: at, Value: float64(s * (i + 7) % 97)})
			}
		}
	}
	report := check.Report{Verdict: "ok", Host: "gpu-1", Time: pagetest.Now()}
	return Input{
		Exporter: "test", Machine: "this host", Host: "gpu-1", Now: pagetest.Now(), Read: pagetest.Now(),
		Interval: 15 * time.Second, Node: n, Report: &report, History: h,
	}
}

func render(t testing.TB, in Input) string {
	t.Helper()
	p, err := NewPage(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	n := New(in)
	if err := p.Render(&b, in, &n, Topology(in)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileText: names from hardware are shown as text, and shortened.
func TestHostileText(t *testing.T) {
	for i, evil := range pagetest.Hostile() {
		in := node(evil, "mlx5_1")
		in.Host, in.Machine = evil, evil
		n := in.Node
		n.InfiniBand.Devices[1].Ports[0].Netdev[0] = snapshot.Netdev{Name: evil, DownReason: evil, DownDetail: evil}
		n.InfiniBand.Devices[1].Ports[0].LinkLayer, n.InfiniBand.Devices[1].Ports[0].Role = evil, evil
		n.InfiniBand.Devices[1].Ports[0].State = new(uint64(1))
		n.InfiniBand.Missing = []snapshot.MissingDevice{{Name: evil, PCIAddress: evil, Reason: evil}}
		*n.Optics.Cages[1].Module = transceiver.Module{
			Vendor: evil, PartNumber: evil, SerialNumber: evil, FormFactor: evil, State: evil,
		}
		pair := accel.GDRPair{
			Topology: evil, Distance: evil, Mechanism: evil, Eligible: true, Send: evil, Receive: evil, Reason: evil,
			Words: evil, Remedy: evil,
		}
		n.GDR.Driver, n.GDR.Flavour, n.GDR.Peermem = evil, evil, evil
		n.GDR.NICs[0].CPUs = evil
		n.GDR.GPUs = []accel.GDRGPU{{
			Index: evil, Model: evil, PCIAddress: "0000:02:00.0", Root: "pci0000:00", Best: pair,
			Hops: []accel.PCIeHop{{Address: "0000:00:00.0"}, {Address: "0000:02:00.0"}},
		}}
		n.GDR.Pairs = []accel.GDRPair{pair, pair}
		in.Report.Verdict, in.Report.Findings = "critical", []check.Finding{{
			Alert: evil, Severity: "critical", State: "firing", Since: pagetest.Now(),
			Labels:  map[string]string{"device": evil, "port": "1"},
			Summary: evil, Description: evil, Evidence: []check.Fact{{Name: evil, Value: evil}}, Diagnose: evil, Action: evil,
			Drain: evil, DrainReason: evil, RunbookURL: evil,
		}}
		in.Report.NotEvaluated = []check.NotEvaluated{{Alert: evil, Reason: "permission", Needs: evil}}
		html := render(t, in)
		if tags := pagetest.ForeignTags(html); tags != nil {
			t.Errorf("text %d: %q", i, tags)
		}
		if at := strings.IndexFunc(html, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); at >= 0 {
			t.Errorf("text %d: has %q", i, html[at:at+8])
		}
		if len(html) < 1<<10 || len(html) > 60<<10 {
			t.Errorf("text %d: %d bytes", i, len(html))
		}
		if _, err := json.Marshal(New(in)); err != nil {
			t.Errorf("text %d: %v", i, err)
		}
	}
}

// TestManyPorts: the page of a host with 256 ports is bounded; those with a fault keep their plots.
func TestManyPorts(t *testing.T) {
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprintf("mlx5_%d", i))
	}
	in := node(names...)
	in.Report.Verdict, in.Report.ExitCode = "critical", check.ExitCritical
	in.Report.Findings = []check.Finding{
		{Alert: "RDMAPortDown", Severity: "critical", Labels: map[string]string{"device": "mlx5_200", "port": "1"}},
	}
	html := render(t, in)
	if len(html) > 256<<10 {
		t.Errorf("%d bytes", len(html))
	}
	_, row, _ := strings.Cut(html, `<th scope="row">mlx5_200/1<`)
	row, _, _ = strings.Cut(row, "</tr>")
	if !strings.Contains(row, `class="spark"`) || !strings.Contains(row, "RDMAPortDown") {
		t.Errorf("row of the port in trouble: %.400s", row)
	}
	if !strings.Contains(html, "244 ports without findings have no plots") {
		t.Error("does not say which ports have no plots")
	}
}

func BenchmarkManyPorts(b *testing.B) {
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprintf("mlx5_%d", i))
	}
	in := node(names...)
	for b.Loop() {
		render(b, in)
	}
}

// TestStale: the page of a host whose rounds have stopped shows that in the bar and in the title.
func TestStale(t *testing.T) {
	for age, want := range map[time.Duration]bool{15 * time.Second: false, time.Minute: false, 3 * time.Minute: true} {
		t.Run(age.String(), func(t *testing.T) {
			in := node("mlx5_0")
			in.Now = in.Read.Add(age)
			if got := strings.Contains(render(t, in), "<strong>STALE 3m:</strong>"); got != want {
				t.Error(got)
			}
			if got := strings.Contains(render(t, in), "<title>STALE 3m – gpu-1</title>"); got != want {
				t.Errorf("title: %v", got)
			}
		})
	}
}

func TestStarting(t *testing.T) {
	html := render(t, Input{Host: "gpu-1"})
	if !strings.Contains(html, "The first round of readings has not finished.") || strings.Contains(html, "0001") {
		t.Error(html)
	}
}

func TestHealth(t *testing.T) {
	found := func(severity string, labels ...string) func(*Input) {
		return func(in *Input) {
			f := check.Finding{Alert: "RDMAx", Severity: severity, Labels: map[string]string{}}
			for i := 0; i < len(labels); i += 2 {
				f.Labels[labels[i]] = labels[i+1]
			}
			in.Report.Findings = append(in.Report.Findings, f)
		}
	}
	port := func(change func(*snapshot.Port)) func(*Input) {
		return func(in *Input) { change(&in.Node.InfiniBand.Devices[0].Ports[0]) }
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   page.Health
	}{
		"well":               {func(*Input) {}, page.OK},
		"its alert":          {found("critical", "device", "mlx5_0", "port", "1"), page.Critical},
		"its device's":       {found("warning", "device", "mlx5_0"), page.Warning},
		"another port's":     {found("critical", "device", "mlx5_0", "port", "2"), page.OK},
		"the host's":         {found("critical"), page.OK},
		"down":               {port(func(p *snapshot.Port) { p.State = new(uint64(1)) }), page.Inactive},
		"not read":           {port(func(p *snapshot.Port) { p.State = nil }), page.NotEvaluated},
		"slow without alert": {port(func(p *snapshot.Port) { p.Rate = new(200e9) }), page.Info},
		"ignored":            {func(in *Input) { in.Node.InfiniBand.Ignored = []snapshot.PortID{{Device: "mlx5_0"}} }, page.Ignored},
		"no rules":           {func(in *Input) { in.Report = nil }, page.NotEvaluated},
		"unknown":            {func(in *Input) { in.Report.ExitCode = check.ExitUnknown }, page.NotEvaluated},
		"it alone is unknown": {func(in *Input) {
			in.Report.ExitCode = check.ExitUnknown
			in.Report.Objects = []account.Object{{Name: "mlx5_0/1", Class: account.Unknown, Compute: true}}
		}, page.NotEvaluated},
		"another is unknown": {func(in *Input) {
			in.Report.ExitCode = check.ExitUnknown
			in.Report.Objects = []account.Object{{Name: "mlx5_0/2", Class: account.Unknown, Compute: true}}
		}, page.OK},
	} {
		t.Run(name, func(t *testing.T) {
			in := node("mlx5_0")
			c.change(&in)
			if got := New(in).Ports[0].Health; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	var got []string
	for _, p := range New(node("mlx5_10", "mlx5_9", "bnxt_re2", "mlx5_bond_0")).Ports {
		got = append(got, p.Device)
	}
	if want := "bnxt_re2 mlx5_9 mlx5_10 mlx5_bond_0"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPlotGaps: gaps in the samples are not drawn over.
func TestPlotGaps(t *testing.T) {
	h := &History{From: pagetest.Now(), To: pagetest.Now().Add(10 * time.Minute), Step: time.Minute}
	at := func(m int, v float64) alerting.Point {
		return alerting.Point{At: pagetest.Now().Add(time.Duration(m) * time.Minute), Value: v}
	}
	lines := h.drawLines(0, 10, curve{"a", []alerting.Point{at(0, 0), at(1, 5), at(2, math.NaN()), at(4, 10), at(5, 99)}})
	if want := "M1 25 14 13M53 1 66 1"; len(lines) != 1 || lines[0].D != want {
		t.Errorf("%+v, want %s", lines, want)
	}
}

// noSource fails like a store that was removed.
type noSource struct{ to time.Time }

func (s noSource) Observed() (from, to time.Time) { return s.to, s.to }

func (s noSource) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]alerting.Series, error) {
	return nil, store.ErrUnavailable
}

func (s noSource) Query(context.Context, string, time.Time) ([]alerting.Sample, error) {
	return nil, store.ErrUnavailable
}

func TestNoHistory(t *testing.T) {
	if h, err := ReadHistory(t.Context(), noSource{}); h != nil || err != nil {
		t.Errorf("before the first round: %v, %v", h, err)
	}
	if _, err := ReadHistory(t.Context(), noSource{pagetest.Now()}); err == nil {
		t.Error("no store, no error")
	}
	in := node("mlx5_0")
	in.History, in.NoHistory = nil, store.ErrUnavailable
	if html := render(t, in); !strings.Contains(html, "without a history: alerting store unavailable") ||
		!strings.Contains(html, "mlx5_0/1") {
		t.Error("a store that fails takes the page with it, or is not reported")
	}
}
