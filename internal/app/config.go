package app

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/fixtures"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/rounds"
)

// config is what all commands share: which machine, which collectors.
type config struct {
	paths            host.Paths
	replay           string
	stateDir         string
	includeText      string
	excludeText      string
	include, exclude *regexp.Regexp
	disableDefaults  bool
	chosen           map[string]*choice
	timeout          time.Duration
	maxProcs         int
	sampleInterval   time.Duration // serve only
	moduleInterval   time.Duration // serve only
	gpuInterval      time.Duration // serve only
	listenLLDP       bool          // serve only
	gpuMode          string
	bufinfo          bool
	askSubnet        bool
	askAgents        bool
	site             siteFile
	nccl             gdr.Job // topo only
}

// choice is --collector.NAME and --no-collector.NAME.
type choice struct {
	on, set bool
}

func (c *config) flags(a *kingpin.Application) {
	a.Flag("path.rootfs", "Root of the machine's file system.").Default("/").StringVar(&c.paths.RootFS)
	a.Flag("path.sysfs", "The machine's /sys; sys below --path.rootfs if empty.").PlaceHolder("DIR").StringVar(&c.paths.Sys)
	a.Flag("path.procfs", "The machine's /proc; proc below --path.rootfs if empty.").PlaceHolder("DIR").StringVar(&c.paths.Proc)
	a.Flag("replay", "Run on a capture instead of this host; \"demo\" is the recorded node in the binary.").PlaceHolder("FILE").StringVar(&c.replay)
	a.Flag("state.dir", "Where the exporter remembers what links and devices there were; only serve writes there.").Default("/var/lib/rdma_exporter").StringVar(&c.stateDir)
	a.Flag("config.file", "What the operator says of the site, YAML: docs/configuration.md.").PlaceHolder("FILE").StringVar(&c.site.name)
	a.Flag("device.include", "Read only RDMA devices whose names match this regular expression, anchored.").PlaceHolder("REGEX").StringVar(&c.includeText)
	a.Flag("device.exclude", "Never open RDMA devices whose names match this regular expression, anchored.").PlaceHolder("REGEX").StringVar(&c.excludeText)
	a.Flag("collector.disable-defaults", "Switch all collectors off that are not named.").BoolVar(&c.disableDefaults)
	c.chosen = map[string]*choice{}
	for _, x := range collector.All(collector.Options{}) {
		ch := &choice{on: x.Default}
		c.chosen[x.Name] = ch
		a.Flag("collector."+x.Name, "Collect "+x.Help+".").Default(fmt.Sprint(x.Default)).
			IsSetByUser(&ch.set).BoolVar(&ch.on)
	}
	a.Flag("collector.gpu.mode", "Figures of GPUs: fabric, what tells of NVLink, PCIe and errors; full, also what a DCGM exporter tells: temperature, power, memory, utilization, limits of clocks.").Default(gpuFabric).EnumVar(&c.gpuMode, gpuFabric, gpuFull)
	a.Flag("collector.infiniband.mad", "Ask each InfiniBand port for its counters by one or two management datagrams, in place of reading 21 files, each of which is a firmware command; needs root or the group of umad.").BoolVar(&c.askAgents)
	a.Flag("collector.neighbour.subnet", "Ask the far end of each InfiniBand link, one directed hop away, who it is, what it has enabled and what it counts, and the subnet manager how it does: eight datagrams a minute; needs root or the group of umad.").BoolVar(&c.askSubnet)
	a.Flag("collector.gdr.bufinfo", "Look at the DMA-BUFs of GPUs in debugfs where a job is suspected of staging, once in ten minutes at most; the kernel holds up jobs meanwhile.").BoolVar(&c.bufinfo)
	a.Flag("collect.timeout", "Longest wait for a collection.").Default("10s").DurationVar(&c.timeout)
	a.Flag("runtime.gomaxprocs", "Processors that the program uses at a time.").Default("2").IntVar(&c.maxProcs)
}

// Values of --collector.gpu.mode.
const (
	gpuFabric = "fabric"
	gpuFull   = "full"
)

func (c *config) isOn(x *collector.Collector) bool {
	ch := c.chosen[x.Name]
	if c.disableDefaults && !ch.set {
		return false
	}
	return ch.on
}

// check finds what kingpin does not: values that make no sense.
func (c *config) check() (err error) {
	if c.include, err = anchored("--device.include", c.includeText); err != nil {
		return err
	}
	if c.exclude, err = anchored("--device.exclude", c.excludeText); err != nil {
		return err
	}
	if c.timeout <= 0 {
		return errors.New("--collect.timeout: has to be more than 0")
	}
	if c.maxProcs < 1 {
		return errors.New("--runtime.gomaxprocs: has to be at least 1")
	}
	return nil
}

func anchored(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return re, nil
}

// machine is the host of a command: this one, or a replay.
type machine struct {
	*host.Host
	player *capture.Player // nil for a live host
	meta   capture.Meta    // of the replay
	config []byte          // of the replay: the configuration file that was in force there; nil if there was none
	past   time.Time       // the moment that an earlier round of a replay is played at; zero: now
	close  func() error
}

// demo names the recorded node in the binary.
const demo = fixtures.Demo

// open opens the machine and reads what the operator says of it. A replay ends its recorded rounds at last.
func (c *config) open(last time.Time) (*machine, error) {
	m, err := c.openMachine(last)
	if err != nil {
		return nil, err
	}
	if err := c.site.open(c, m); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (c *config) openMachine(last time.Time) (*machine, error) {
	if c.replay == "" {
		l, err := host.OpenLive(c.paths)
		if err != nil {
			return nil, err
		}
		return &machine{Host: &l.Host, close: l.Close}, nil
	}
	a, err := c.archive()
	if err != nil {
		return nil, fmt.Errorf("--replay=%s: %w", c.replay, err)
	}
	if last.IsZero() {
		last = a.Meta.Time.Add(a.Rounds[len(a.Rounds)-1].At)
	}
	p, err := capture.Play(a, last.Add(-a.Rounds[len(a.Rounds)-1].At))
	if err != nil {
		return nil, fmt.Errorf("--replay=%s: %w", c.replay, err)
	}
	return &machine{Host: p.Host(), player: p, meta: a.Meta, config: a.Config(), close: p.Close}, nil
}

func (c *config) archive() (*capture.Archive, error) {
	if c.replay == demo {
		return capture.Parse(fixtures.Builtin(demo))
	}
	return capture.Load(c.replay, fixtures.Builtin)
}

// clock is the time of day, or of the earlier round of a replay that is being played.
func (m *machine) clock() time.Time {
	if !m.past.IsZero() {
		return m.past
	}
	return time.Now()
}

// seek moves a replayed machine to a moment; a live one is where it is.
func (m *machine) seek(t time.Time) error {
	if m.player == nil {
		return nil
	}
	return m.player.Seek(t)
}

// recording names what is judged instead of a host; empty on one.
func (m *machine) recording(c *config) string {
	if m.player == nil {
		return ""
	}
	return fmt.Sprintf("%s, recorded %s", c.replay, m.meta.Time.UTC().Format(time.DateOnly))
}

// recorded is what is served instead of a host; nil on one.
func (m *machine) recorded() *rounds.Recording {
	if m.player == nil {
		return nil
	}
	return &rounds.Recording{Hostname: m.meta.Hostname, Date: m.meta.Time.UTC().Format(time.DateOnly)}
}

// playRounds looks at the rounds of a replay, so that what they showed is known when serving begins.
func (m *machine) playRounds(look func() error) error {
	if m.player == nil {
		return nil
	}
	times := m.player.Times()
	for _, m.past = range times[:len(times)-1] {
		if err := look(); err != nil {
			return err
		}
	}
	m.past = time.Time{}
	return look()
}

// describe says which machine is read, for the first line of the log and the page.
func (m *machine) describe(c *config) string {
	if m.player == nil {
		return "this host"
	}
	name := c.replay
	if name == demo {
		name = "the recorded node in the binary"
	}
	return fmt.Sprintf("a replay of %s (%s, recorded %s), nothing of this host", name, m.meta.Hostname, m.meta.Time.UTC().Format(time.DateOnly))
}
