package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
)

// FabricPort differs from DefaultPort, since serve and fabric may run on one host.
const FabricPort = "10880"

// FabricJob is the label job of a fabric exporter, as in packaging/prometheus/scrape.yml.
const FabricJob = "rdma_exporter_fabric"

// fabricEntry is the entry of a capture with the known nodes and links of a fabric, and the port of the sweeps.
const fabricEntry = "exporter/fabric.json"

// OpenMAD opens a port of an InfiniBand device for management datagrams; empty and 0 are any.
type OpenMAD func(p rooted.Paths, device string, port int) (mad.Transport, umad.MADPort, error)

// FabricConfig are the flags of the commands that sweep a fabric.
type FabricConfig struct {
	Open      OpenMAD
	Device    string
	Port      int
	Client    mad.Options
	Adapters  bool
	pkeyIndex int
}

// PortFlags adds the flags of the port to sweep from. The others have their defaults.
func (f *FabricConfig) PortFlags(a *kingpin.CmdClause) {
	f.Client = mad.Options{Rate: 10000, InFlight: 8, Timeout: 500 * time.Millisecond, Retries: 2}
	a.Flag("fabric.device",
		"InfiniBand device to sweep from. Default: the device of the earlier sweeps, at the first start one with an ACTIVE port.").
		PlaceHolder("DEVICE").StringVar(&f.Device)
	a.Flag("fabric.port", "Port of the device. 0 selects any.").Default("0").IntVar(&f.Port)
	a.Flag("fabric.pkey-index", "P_Key of counter requests, as an index into the P_Key table of the port.").
		Default("0").IntVar(&f.pkeyIndex)
}

// Flags adds all flags.
func (f *FabricConfig) Flags(a *kingpin.CmdClause) {
	f.PortFlags(a)
	a.Flag("fabric.rate", "Maximum number of requests per second.").Default("10000").IntVar(&f.Client.Rate)
	a.Flag("fabric.in-flight", "Maximum number of outstanding requests.").Default("8").IntVar(&f.Client.InFlight)
	a.Flag("fabric.timeout", "Timeout of a request.").Default("500ms").DurationVar(&f.Client.Timeout)
	a.Flag("fabric.retries", "Number of retries of a request that timed out.").Default("2").IntVar(&f.Client.Retries)
	a.Flag("fabric.adapter-counters", "Read the counters of adapters too. Exporters on their hosts expose the same counters.").BoolVar(&f.Adapters)
}

// Check validates the flags.
func (f *FabricConfig) Check() error {
	f.Client.PKeyIndex = uint16(f.pkeyIndex)
	return command.Checks{
		{f.Port < 0 || f.Port > 254, fmt.Errorf("--fabric.port=%d: must be from 1 to 254, or 0 for any", f.Port)},
		{f.Client.Rate < 1 || f.Client.Rate > 1e6, fmt.Errorf("--fabric.rate=%d: must be from 1 to 1000000", f.Client.Rate)},
		{f.Client.InFlight < 1 || f.Client.InFlight > 64, fmt.Errorf("--fabric.in-flight=%d: must be from 1 to 64: subnet management has no flow control, more requests are dropped", f.Client.InFlight)},
		{f.Client.Timeout < 10*time.Millisecond, fmt.Errorf("--fabric.timeout=%s: must be 10ms or more", f.Client.Timeout)},
		{f.Client.Retries < 0 || f.Client.Retries > 10, fmt.Errorf("--fabric.retries=%d: must be from 0 to 10", f.Client.Retries)},
		{f.pkeyIndex < 0 || f.pkeyIndex > math.MaxUint16, fmt.Errorf("--fabric.pkey-index=%d: must be from 0 to 65535", f.pkeyIndex)},
	}.First()
}

// FabricKept is the saved state of a fabric.
type FabricKept struct {
	fabric.Data
	From umad.MADPort `json:"from,omitzero"` // the port of the sweeps
}

// FabricDir returns the directory of the saved state of a fabric.
func (c *Config) FabricDir() string { return filepath.Join(c.StateDir, control.FabricFolder) }

// RememberedFabric returns the known nodes and links from earlier runs: from the capture of a replay, else from the
// state directory if there is one.
func (c *Config) RememberedFabric(ctx context.Context, m *Machine) (k FabricKept, err error) {
	if m.Player == nil {
		if err = state.Read(ctx, c.FabricDir(), &k); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return k, err
	}
	b, err := m.Files.Read(fabricEntry, nil)
	if err != nil {
		return k, fmt.Errorf("--replay=%s: not a capture of a fabric, which rdma_exporter capture --fabric writes: %w", c.Replay, err)
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return k, fmt.Errorf("--replay=%s: %s: %w", c.Replay, fabricEntry, err)
	}
	return k, nil
}

// Fabric is the fabric that a command sweeps from a machine: a live one, or a replay.
type Fabric struct {
	*Machine
	Monitor *fabric.Monitor
	// Reads are the metrics that rounds have; none: all.
	Reads    atomic.Pointer[map[string]bool]
	Coverage func() *coverage.Detector    // nil: of no rules
	Alerting func() []exposition.Family   // further metrics; nil: none
	From     atomic.Pointer[umad.MADPort] // the port of the sweeps; nil: none was opened
	clock    func() time.Time
}

// NewFabric prepares the sweeps of a fabric, whose saved state is known, by a clock.
func (c *Config) NewFabric(
	f *FabricConfig, m *Machine, known FabricKept, clock func() time.Time, log *slog.Logger,
) *Fabric {
	x := &Fabric{Machine: m, clock: clock, Monitor: &fabric.Monitor{
		Client: f.Client, Adapters: f.Adapters, Memory: fabric.NewMemory(known.Data), Site: c.Site.Store.Current(),
		Now: clock, Logger: log,
	}}
	from := known.From
	x.Monitor.Open = func() (mad.Transport, error) {
		if m.Player != nil {
			x.From.Store(&known.From)
			return mad.NewPlayer(func(file string) ([]byte, error) { return m.Files.Read(file, nil) }), nil
		}
		if last := x.From.Load(); last != nil {
			from = *last
		}
		t, port, err := f.openPort(c.Paths, from)
		if err == nil {
			log.Info("sweeping the InfiniBand subnet", "device", port.Device, "port", port.Port)
			x.From.Store(&port)
		}
		return t, err
	}
	return x
}

// openPort opens the port to sweep from. Without --fabric.device it is the port of the earlier sweeps and no other:
// another port may be in another fabric, and the saved state of this one would be lost.
func (f *FabricConfig) openPort(p rooted.Paths, before umad.MADPort) (mad.Transport, umad.MADPort, error) {
	device, port := f.Device, f.Port
	if device == "" && before.Device != "" {
		before.Port = cmp.Or(f.Port, before.Port)
		found, err := umad.FindMAD(p, before)
		if err != nil {
			return nil, umad.MADPort{}, fmt.Errorf("%w; another port may be in another fabric: select the port to sweep from with --fabric.device", err)
		}
		device, port = found.Device, found.Port
	}
	return f.Open(p, device, port)
}

// Collect returns the metrics for a scrape. It does not wait: sweeps are independent of scrapes.
func (x *Fabric) Collect(_ context.Context, names []string) (*rounds.Picture, error) {
	if len(names) > 0 {
		return nil, &rounds.UnknownCollectorError{Name: names[0]}
	}
	p := &rounds.Picture{At: x.clock(), Read: x.clock(), Families: x.Monitor.Families()}
	if x.Alerting != nil {
		p.Families = slices.Concat(x.Alerting(), p.Families) // sorted by name: rdma_alerting_, rdma_fabric_
	}
	return p, nil
}

// CollectWithin returns the metrics of the last sweep that the rules read, for a round at this time.
func (x *Fabric) CollectWithin(context.Context, []string, time.Duration) (*rounds.Picture, error) {
	p := &rounds.Picture{At: x.clock(), Read: x.clock(), Unread: x.unswept()}
	p.Families = x.Monitor.Families()
	if reads := x.Reads.Load(); reads != nil {
		p.Families = slices.DeleteFunc(slices.Clone(p.Families),
			func(f exposition.Family) bool { return !(*reads)[f.Head.Desc.Name] })
	}
	if x.Coverage != nil {
		p.Coverage = x.Coverage().Evaluate(coverage.Round{
			Families:  p.Families,
			Collector: func(string) coverage.Reason { return x.unread() },
			Source:    func(string) coverage.Reason { return "" },
		})
	}
	return p, nil
}

// unswept returns the names of all metrics before the first sweep of this run has a result: what an earlier run found
// lasts until then. Otherwise nil.
func (x *Fabric) unswept() map[string]bool {
	if x.Monitor.Picture().Fabric != nil {
		return nil
	}
	out := map[string]bool{}
	for _, d := range fabric.Descs() {
		out[d.Name] = true
	}
	return out
}

// unread returns why the last sweep has no result; empty if it has one.
func (x *Fabric) unread() coverage.Reason {
	switch p := x.Monitor.Picture(); {
	case p.Failed != nil:
		return coverage.Failed
	case p.Fabric == nil:
		return coverage.NotReadYet
	}
	return ""
}

// Seen returns the state of the last sweep that is reported although it has no alert.
func (x *Fabric) Seen(*rounds.Picture) check.Seen {
	p := x.Monitor.Picture()
	name := p.Names()
	out := &check.Fabric{SlowerEnd: []string{}, CreditLoops: [][]string{}}
	if p.Failed != nil {
		out.Failed = p.Failed.Error()
	}
	if f := p.Fabric; f != nil {
		out.Links = len(f.Links) / 2
		for _, n := range f.Nodes {
			switch n.Type {
			case mad.Switch:
				out.Switches++
			case mad.ChannelAdapter:
				out.Adapters++
			}
		}
		for _, l := range p.Known.Links {
			if f.Links[l.A] == l.B && f.Differs(l.A) {
				out.SlowerEnd = append(out.SlowerEnd, name(l.A)+" to "+name(l.B))
			}
		}
		for _, loop := range p.Loops {
			var ports []string
			for _, e := range loop {
				ports = append(ports, name(e))
			}
			out.CreditLoops = append(out.CreditLoops, ports)
		}
	}
	return check.Seen{Fabric: out}
}

// Run sweeps whenever schedule calls, until it returns. A replay is moved to the time of the sweep.
func (x *Fabric) Run(ctx context.Context, schedule func(sweep func() error)) {
	x.Monitor.Run(ctx, func(sweep func()) {
		schedule(func() error {
			if err := x.Machine.Seek(x.clock()); err != nil {
				return err
			}
			sweep()
			return nil
		})
	})
}

// Record sweeps a fabric at each offset from the first time, and records the answers. wait waits for an offset.
func (x *Fabric) Record(
	ctx context.Context, f *FabricConfig, offsets []time.Duration, wait func(offset time.Duration) error,
) (*replay.Recorder, error) {
	t, err := x.Monitor.Open()
	if err != nil {
		return nil, err
	}
	answers := mad.NewRecorder(t)
	client := mad.NewClient(answers, f.Client)
	defer client.Close()
	r, memory := replay.NewRecorder(x.Host), x.Monitor.Memory
	known, err := json.MarshalIndent(FabricKept{memory.Data(), *x.From.Load()}, "", " ")
	if err != nil {
		return nil, err
	}
	r.Put(fabricEntry, append(known, '\n'))
	for _, offset := range offsets {
		if err := wait(offset); err != nil {
			return nil, err
		}
		swept, err := fabric.Sweep(ctx, client, nil, fabric.Options{Adapters: f.Adapters, Also: memory.Had, Now: x.clock})
		if err != nil {
			return nil, err
		}
		memory.Note(swept, time.Time{})
		for file, lines := range answers.Take() {
			r.Put(file, lines)
		}
		r.EndRound(offset)
	}
	return r, nil
}

// PortName returns the port of the sweeps in words.
func (x *Fabric) PortName() string {
	if p := x.From.Load(); p != nil {
		return p.String()
	}
	return "no port"
}
