package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/umad"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/web"
)

// fabricPort differs from defaultPort, since serve and fabric may run on one host.
const fabricPort = "10880"

// fabricGC is GOGC in fabric mode, where most of the memory is the text of series: with 2,048 hosts it saves some 40
// MiB.
const fabricGC = 25

// OpenMAD opens a port of an InfiniBand device for management datagrams; empty and 0 are any.
type OpenMAD func(p rooted.Paths, device string, port int) (mad.Transport, umad.MADPort, error)

// Fabric is the command fabric, with its flags.
type Fabric struct {
	Web
	Open      OpenMAD
	device    string
	port      int
	client    mad.Options
	pkeyIndex int
	adapters  bool
	interval  time.Duration
	full      time.Duration
	forget    time.Duration
}

// Flags adds the flags.
func (f *Fabric) Flags(a *kingpin.CmdClause) {
	a.Flag("fabric.device",
		"InfiniBand device to sweep from. Default: the device of the earlier sweeps, at the first start one with an ACTIVE port.").
		PlaceHolder("DEVICE").StringVar(&f.device)
	a.Flag("fabric.port", "Port of the device. 0 selects any.").Default("0").IntVar(&f.port)
	a.Flag("fabric.interval", "Sweep interval; at least 1s.").Default("1m").DurationVar(&f.interval)
	a.Flag("fabric.full-interval",
		"Interval of querying the identity of all nodes, not only of those with changed links.").
		Default("10m").DurationVar(&f.full)
	a.Flag("fabric.forget-after", "Retention of nodes and links that are gone.").Default("168h").DurationVar(&f.forget)
	a.Flag("fabric.rate", "Maximum number of requests per second.").Default("10000").IntVar(&f.client.Rate)
	a.Flag("fabric.in-flight", "Maximum number of outstanding requests.").Default("8").IntVar(&f.client.InFlight)
	a.Flag("fabric.timeout", "Timeout of a request.").Default("500ms").DurationVar(&f.client.Timeout)
	a.Flag("fabric.retries", "Number of retries of a request that timed out.").Default("2").IntVar(&f.client.Retries)
	a.Flag("fabric.pkey-index", "P_Key of counter requests, as an index into the P_Key table of the port.").
		Default("0").IntVar(&f.pkeyIndex)
	a.Flag("fabric.adapter-counters", "Read the counters of adapters too. Exporters on their hosts expose the same counters.").BoolVar(&f.adapters)
	f.Web.flags(a, fabricPort)
}

func (f *Fabric) check(c *machine.Config) error {
	return cmp.Or(command.Checks{
		{c.Replay != "", errors.New("--replay: not supported by fabric, which sweeps a live subnet")},
		{f.interval < time.Second, fmt.Errorf("--fabric.interval=%s: must be 1s or more: each sweep queries every port of every switch", f.interval)},
		{f.full < f.interval, fmt.Errorf("--fabric.full-interval=%s: must be --fabric.interval (%s) or more", f.full, model.Duration(f.interval))},
		{f.forget < f.full, fmt.Errorf("--fabric.forget-after=%s: must be --fabric.full-interval (%s) or more", f.forget, model.Duration(f.full))},
		{f.port < 0 || f.port > 254, fmt.Errorf("--fabric.port=%d: must be from 1 to 254, or 0 for any", f.port)},
		{f.client.Rate < 1 || f.client.Rate > 1e6, fmt.Errorf("--fabric.rate=%d: must be from 1 to 1000000", f.client.Rate)},
		{f.client.InFlight < 1 || f.client.InFlight > 64, fmt.Errorf("--fabric.in-flight=%d: must be from 1 to 64: subnet management has no flow control, more requests are dropped", f.client.InFlight)},
		{f.client.Timeout < 10*time.Millisecond, fmt.Errorf("--fabric.timeout=%s: must be 10ms or more", f.client.Timeout)},
		{f.client.Retries < 0 || f.client.Retries > 10, fmt.Errorf("--fabric.retries=%d: must be from 0 to 10", f.client.Retries)},
		{f.pkeyIndex < 0 || f.pkeyIndex > math.MaxUint16, fmt.Errorf("--fabric.pkey-index=%d: must be from 0 to 65535", f.pkeyIndex)},
	}.First(), f.Web.check())
}

// fabricKept is the saved state of a fabric.
type fabricKept struct {
	fabric.Data
	From umad.MADPort `json:"from,omitzero"` // the port of the sweeps
}

// openPort opens the port to sweep from. Without --fabric.device it is the port of the earlier sweeps and no other:
// another port may be in another fabric, and the saved state of this one would be lost.
func (f *Fabric) openPort(p rooted.Paths, before umad.MADPort) (mad.Transport, umad.MADPort, error) {
	device, port := f.device, f.port
	if device == "" && before.Device != "" {
		before.Port = cmp.Or(f.port, before.Port)
		found, err := umad.FindMAD(p, before)
		if err != nil {
			return nil, umad.MADPort{}, fmt.Errorf("%w; another port may be in another fabric: select the port to sweep from with --fabric.device", err)
		}
		device, port = found.Device, found.Port
	}
	return f.Open(p, device, port)
}

// Run runs the command.
func (f *Fabric) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := cmp.Or(f.check(c), f.checkFile(), f.checkDescriptors()); err != nil {
		return command.Usage(err)
	}
	if err := c.Site.Read(); err != nil {
		return command.Usage(err)
	}
	f.client.PKeyIndex = uint16(f.pkeyIndex)
	runtime.GOMAXPROCS(c.MaxProcs)
	setGC(fabricGC)
	m := &fabric.Monitor{
		Client: f.client, Adapters: f.adapters, Interval: f.interval, Full: f.full, Forget: f.forget,
		Site: c.Site.Store.Current(), Logger: std.Log,
	}
	shown, pages, err := f.page(m)
	if err != nil {
		return command.Usage(err)
	}
	h, err := f.handler(web.Options{Rounds: fabricRounds{m}, Page: pages, Logger: std.Log})
	if err != nil {
		return command.Usage(err)
	}
	dir := filepath.Join(c.StateDir, control.FabricFolder)
	file := &state.File[fabricKept]{Dir: dir, Log: std.Log}
	known, err := file.Open()
	command.LogError(std.Log, "cannot use the state directory, the state of the fabric is lost at the next restart", err)
	from := known.From
	m.Open = func() (mad.Transport, error) {
		t, port, err := f.openPort(c.Paths, from)
		if err == nil {
			std.Log.Info("sweeping the InfiniBand subnet", "device", port.Device, "port", port.Port)
			shown.port.Store(&port)
		}
		return t, err
	}
	// Open and Save are called in turn, Save after each first sweep through a port that has not failed.
	m.Save = func(d fabric.Data) error {
		from = *shown.port.Load()
		if !file.IsOpen() {
			return nil
		}
		return file.Write(fabricKept{d, from})
	}
	m.Memory = fabric.NewMemory(known.Data)
	if file.IsOpen() {
		defer func() { command.LogError(std.Log, "cannot close the state directory", file.Close()) }()
		control, err := fabricControl(dir, m, std.Log)
		if err != nil {
			std.Log.Warn("cannot serve the control socket, rdma_exporter accept cannot reach this exporter", "err", err)
		} else {
			defer func() { command.LogError(std.Log, "cannot close the control socket", control.Close()) }()
		}
	}
	std.Log.Info("starting rdma_exporter fabric", "version", version.Version, "revision", version.GetRevision())
	ctx, cancel := context.WithCancel(ctx)
	var sweeps sync.WaitGroup
	defer sweeps.Wait()
	defer cancel()
	return Until(ctx, h, f.toolkit, std.Log, func() {
		sweeps.Go(func() {
			m.Run(ctx, f.schedule(ctx, func() {
				shown.forget()
				h.Ready()
			}))
		})
	})
}

// schedule sweeps immediately and then at this host's phase of the interval, so that two exporters of one fabric do not
// sweep at the same time. It calls done after each sweep.
func (f *Fabric) schedule(ctx context.Context, done func()) func(sweep func()) {
	own := phase(cmp.Or(hostname(), f.device), f.interval)
	return func(sweep func()) {
		tick(ctx, f.interval, own, func() {
			sweep()
			done()
		})
	}
}

// hostname is empty if the host has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// fabricRounds serves the result of the last sweep.
type fabricRounds struct{ *fabric.Monitor }

// Collect does not wait: sweeps are independent of scrapes.
func (r fabricRounds) Collect(_ context.Context, names []string) (*rounds.Picture, error) {
	if len(names) > 0 {
		return nil, &rounds.UnknownCollectorError{Name: names[0]}
	}
	return &rounds.Picture{Families: r.Families()}, nil
}
