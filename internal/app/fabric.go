package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"

	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/web"
)

// fabricPort is beside that of the exporter of a node, so that both run on one host.
const fabricPort = "10880"

// fabricState is the folder below the state directory: an exporter of the node has the lock of that one.
const fabricState = "fabric"

// fabricGC is GOGC in fabric mode, where most of the memory is the text of series: of 2,048 hosts it saves some 40 MiB.
const fabricGC = 25

// OpenMAD opens a port of an InfiniBand device for management datagrams; empty and 0 are any.
type OpenMAD func(p host.Paths, device string, port int) (mad.Transport, host.MADPort, error)

type fabricConfig struct {
	webConfig
	open      OpenMAD
	device    string
	port      int
	client    mad.Options
	pkeyIndex int
	adapters  bool
	interval  time.Duration
	full      time.Duration
	forget    time.Duration
}

func (f *fabricConfig) flags(a *kingpin.CmdClause) {
	f.webConfig.flags(a, fabricPort)
	a.Flag("fabric.device", "InfiniBand device to look from; if empty the one that the fabric was seen from before, at first one with an ACTIVE port.").PlaceHolder("DEVICE").StringVar(&f.device)
	a.Flag("fabric.port", "Port of the device; 0 for any.").Default("0").IntVar(&f.port)
	a.Flag("fabric.interval", "How often the fabric is looked at; at least 1s.").Default("1m").DurationVar(&f.interval)
	a.Flag("fabric.full-interval", "How often all nodes are asked again who they are, not only those whose links have changed.").Default("10m").DurationVar(&f.full)
	a.Flag("fabric.forget-after", "How long a node or a link that is gone is remembered.").Default("168h").DurationVar(&f.forget)
	a.Flag("fabric.rate", "Requests a second at most.").Default("10000").IntVar(&f.client.Rate)
	a.Flag("fabric.in-flight", "Requests that wait for an answer at a time, at most.").Default("8").IntVar(&f.client.InFlight)
	a.Flag("fabric.timeout", "How long an answer is waited for.").Default("500ms").DurationVar(&f.client.Timeout)
	a.Flag("fabric.retries", "How often a request is repeated that has no answer.").Default("2").IntVar(&f.client.Retries)
	a.Flag("fabric.pkey-index", "Index of the P_Key by which counters are asked for, in the table of the port.").Default("0").IntVar(&f.pkeyIndex)
	a.Flag("fabric.adapter-counters", "Ask for the counters of adapters too, which the exporters on their nodes tell.").BoolVar(&f.adapters)
}

func (f *fabricConfig) check(c *config) error {
	switch {
	case c.replay != "":
		return errors.New("--replay: fabric looks at the fabric itself; a recording is of one node")
	case f.interval < time.Second:
		return errors.New("--fabric.interval: has to be 1s or more: each look asks every switch for every port")
	case f.full < f.interval:
		return errors.New("--fabric.full-interval: has to be --fabric.interval or more")
	case f.forget < f.full:
		return errors.New("--fabric.forget-after: has to be --fabric.full-interval or more")
	case f.port < 0 || f.port > 254:
		return errors.New("--fabric.port: has to be from 1 to 254, or 0 for any")
	case f.client.Rate < 1 || f.client.Rate > 1e6:
		return errors.New("--fabric.rate: has to be from 1 to 1000000")
	case f.client.InFlight < 1 || f.client.InFlight > 64:
		return errors.New("--fabric.in-flight: has to be from 1 to 64: subnet management has no flow control, and more are dropped")
	case f.client.Timeout < 10*time.Millisecond:
		return errors.New("--fabric.timeout: has to be 10ms or more")
	case f.client.Retries < 0 || f.client.Retries > 10:
		return errors.New("--fabric.retries: has to be from 0 to 10")
	case f.pkeyIndex < 0 || f.pkeyIndex > math.MaxUint16:
		return errors.New("--fabric.pkey-index: has to be from 0 to 65535")
	}
	return f.webConfig.check()
}

// fabricKept is what is kept of a fabric across restarts.
type fabricKept struct {
	fabric.Data
	From host.MADPort `json:"from,omitzero"` // the port that it was seen from
}

// openPort opens the port to look from. Without --fabric.device that is the one that the fabric was seen from before, and no other: another one may
// lead into another fabric, and all that is remembered of this one would be gone.
func (f *fabricConfig) openPort(p host.Paths, before host.MADPort) (mad.Transport, host.MADPort, error) {
	device, port := f.device, f.port
	if device == "" && before.Device != "" {
		before.Port = cmp.Or(f.port, before.Port)
		found, err := host.FindMAD(p, before)
		if err != nil {
			return nil, host.MADPort{}, fmt.Errorf("%w; another port may be in another fabric: name the one to look from with --fabric.device", err)
		}
		device, port = found.Device, found.Port
	}
	return f.open(p, device, port)
}

func runFabric(ctx context.Context, c *config, f *fabricConfig, log *slog.Logger) (int, error) {
	if err := f.check(c); err != nil {
		return usage(err)
	}
	if err := f.checkFile(); err != nil {
		return usage(err)
	}
	f.client.PKeyIndex = uint16(f.pkeyIndex)
	runtime.GOMAXPROCS(c.maxProcs)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(fabricGC)
	}
	m := &fabric.Monitor{Client: f.client, Adapters: f.adapters, Interval: f.interval, Full: f.full, Forget: f.forget, Logger: log}
	shown, pages, err := f.page(m)
	if err != nil {
		return usage(err)
	}
	h, err := f.handler(web.Options{Rounds: fabricRounds{m}, Page: pages, Logger: log})
	if err != nil {
		return usage(err)
	}
	dir := filepath.Join(c.stateDir, fabricState)
	store, known := fabricMemory(dir, log)
	from := known.From
	m.Open = func() (mad.Transport, error) {
		t, port, err := f.openPort(c.paths, from)
		if err == nil {
			log.Info("looks at the fabric", "device", port.Device, "port", port.Port)
			shown.port.Store(&port)
		}
		return t, err
	}
	// Open and Save are called in turn, Save after each first sweep through a port that has not failed.
	m.Save = func(d fabric.Data) error {
		from = *shown.port.Load()
		if store == nil {
			return nil
		}
		return store.Write(fabricKept{d, from})
	}
	m.Memory = fabric.NewMemory(known.Data)
	if store != nil {
		defer func() { discard(log, "cannot close the state directory", store.Close()) }()
		control, err := fabricControl(dir, m, log)
		if err != nil {
			log.Warn("accept does not reach this exporter", "err", err)
		} else {
			defer func() { discard(log, "cannot close the control socket", control.Close()) }()
		}
	}
	log.Info("rdma_exporter looks at an InfiniBand fabric", "version", version.Version, "revision", version.GetRevision())
	ctx, cancel := context.WithCancel(ctx)
	var sweeps sync.WaitGroup
	defer sweeps.Wait()
	defer cancel()
	sweeps.Go(func() {
		m.Run(ctx, f.beat(ctx, func() {
			shown.forget()
			h.Ready()
		}))
	})
	return serveUntil(ctx, h, f.toolkit, log)
}

// beat sweeps at once and then at this host's moments, so that two exporters of one fabric do not sweep together, and calls done after each.
func (f *fabricConfig) beat(ctx context.Context, done func()) func(sweep func()) {
	own := phase(cmp.Or(hostname(), f.device), f.interval)
	return func(sweep func()) {
		beat(ctx, f.interval, own, func() {
			sweep()
			done()
		})
	}
}

// hostname is empty where the host has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// fabricMemory begins with what earlier runs have kept. Without the directory the fabric is remembered for this run.
func fabricMemory(dir string, log *slog.Logger) (*state.Store, fabricKept) {
	var known fabricKept
	store, err := state.Open(dir)
	if err != nil {
		log.Warn("the fabric is remembered until the program ends only", "err", err)
		return nil, known
	}
	if aside := store.SetAside(); aside != "" {
		log.Warn("the state file was damaged and an earlier one is used", "set aside", aside)
	}
	err = store.Read(&known)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return store, known
	}
	log.Warn("the fabric is remembered until the program ends only", "err", errors.Join(err, store.Close()))
	return nil, fabricKept{}
}

// fabricRounds serves what the last sweep has found.
type fabricRounds struct{ *fabric.Monitor }

// Collect waits for nothing: a sweep belongs to nobody's scrape.
func (r fabricRounds) Collect(_ context.Context, names []string) (*rounds.Picture, error) {
	if len(names) > 0 {
		return nil, &rounds.UnknownCollectorError{Name: names[0]}
	}
	return &rounds.Picture{Families: r.Families()}, nil
}
