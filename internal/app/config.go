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

// config holds the flags of all commands: host, devices, collectors.
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
	madMode          string
	functions        string
	limits           rounds.Limits
	ruleFiles        []string // serve only: globs
	site             siteFile
	nccl             gdr.Job // topo only
}

// choice is --collector.NAME and --no-collector.NAME.
type choice struct {
	on, set bool
}

func (c *config) flags(a *kingpin.Application) {
	a.Flag("path.rootfs", "Root of the host file system.").Default("/").StringVar(&c.paths.RootFS)
	a.Flag("path.sysfs", "/sys of the host. Default: sys below --path.rootfs.").PlaceHolder("DIR").StringVar(&c.paths.Sys)
	a.Flag("path.procfs", "/proc of the host. Default: proc below --path.rootfs.").PlaceHolder("DIR").StringVar(&c.paths.Proc)
	a.Flag("helper.socket", "Socket of rdma_exporter helper, which reads processes, vital product data and DMA-BUFs in place of this process.").PlaceHolder("PATH").StringVar(&c.paths.Helper)
	a.Flag("replay", "Run on a capture instead of this host; \"demo\" is the built-in one.").PlaceHolder("FILE").StringVar(&c.replay)
	a.Flag("state.dir", "State directory: known links and devices, alert state, incident captures. Written by serve and fabric only.").Default("/var/lib/rdma_exporter").StringVar(&c.stateDir)
	a.Flag("config.file", "Site configuration: expected rates, ignored devices, cabling, settings. YAML, docs/configuration.md.").PlaceHolder("FILE").StringVar(&c.site.name)
	a.Flag("device.include", "Read only RDMA devices whose name matches this regular expression (anchored).").PlaceHolder("REGEX").StringVar(&c.includeText)
	a.Flag("device.exclude", "Never open RDMA devices whose name matches this regular expression (anchored).").PlaceHolder("REGEX").StringVar(&c.excludeText)
	a.Flag("device.functions", "Metrics of virtual functions and subfunctions beside their physical function: rules (identity, state and the counters that rules read), or all.").Default(functionsRules).EnumVar(&c.functions, functionsRules, functionsAll)
	a.Flag("limit.devices", "Maximum number of RDMA devices to read; those beyond it are left out, virtual functions and subfunctions first. 0 disables.").Default("1024").IntVar(&c.limits.Devices)
	a.Flag("limit.series", "Maximum number of series of the collectors; the series of whole devices beyond it are left out, those of virtual functions and subfunctions first. 0 disables.").Default("50000").IntVar(&c.limits.Series)
	a.Flag("collector.disable-defaults", "Disable all collectors that are not enabled explicitly.").BoolVar(&c.disableDefaults)
	c.chosen = map[string]*choice{}
	for _, x := range collector.All(collector.Options{}) {
		ch := &choice{on: x.Default}
		c.chosen[x.Name] = ch
		a.Flag("collector."+x.Name, "Collect "+x.Help+".").Default(fmt.Sprint(x.Default)).
			IsSetByUser(&ch.set).BoolVar(&ch.on)
	}
	a.Flag("collector.gpu.mode", "GPU metrics: fabric (NVLink, PCIe, errors), or full (also temperature, power, memory, utilization and clock limits, as exposed by a DCGM exporter).").Default(gpuFabric).EnumVar(&c.gpuMode, gpuFabric, gpuFull)
	a.Flag("collector.infiniband.mad", "Read the counters of InfiniBand ports with one or two management datagrams per port, with 64 bits and FEC errors, instead of 21 files, each of which is a firmware command: auto (where the umad devices can be opened: as root or in their group), on (a failure is reported), off.").Default("auto").EnumVar(&c.madMode, "auto", "on", "off")
	a.Flag("collector.neighbour.subnet", "Query the far end of each InfiniBand link (one directed hop) for identity, enabled link settings and counters, and the subnet manager for its state: eight datagrams a minute. Requires root or the group of the umad devices. Off by default.").BoolVar(&c.askSubnet)
	a.Flag("collector.gdr.bufinfo", "Read the DMA-BUFs of GPUs in debugfs if a job is suspected of staging, at most once in 10m. The kernel blocks jobs during the read. Off by default.").BoolVar(&c.bufinfo)
	a.Flag("collect.timeout", "Timeout of a collection.").Default("10s").DurationVar(&c.timeout)
	a.Flag("runtime.gomaxprocs", "Maximum number of CPUs used at a time (GOMAXPROCS).").Default("2").IntVar(&c.maxProcs)
}

// madModes are the values of --collector.infiniband.mad.
var madModes = map[string]collector.MADCounters{
	"auto": collector.CountersIfPermitted, "on": collector.CountersByMAD, "off": collector.CountersOfFiles,
}

// Values of --collector.gpu.mode.
const (
	gpuFabric = "fabric"
	gpuFull   = "full"
)

// Values of --device.functions.
const (
	functionsRules = "rules"
	functionsAll   = "all"
)

func (c *config) isOn(x *collector.Collector) bool {
	ch := c.chosen[x.Name]
	if c.disableDefaults && !ch.set {
		return false
	}
	return ch.on
}

// check validates what kingpin does not.
func (c *config) check() (err error) {
	if c.include, err = anchored("--device.include", c.includeText); err != nil {
		return err
	}
	if c.exclude, err = anchored("--device.exclude", c.excludeText); err != nil {
		return err
	}
	if c.timeout <= 0 {
		return fmt.Errorf("--collect.timeout=%s: must be greater than 0", c.timeout)
	}
	if c.limits.Devices < 0 {
		return fmt.Errorf("--limit.devices=%d: must be at least 1, or 0 for no limit", c.limits.Devices)
	}
	if c.limits.Series < 0 {
		return fmt.Errorf("--limit.series=%d: must be at least 1, or 0 for no limit", c.limits.Series)
	}
	if c.maxProcs < 1 {
		return fmt.Errorf("--runtime.gomaxprocs=%d: must be at least 1", c.maxProcs)
	}
	return nil
}

func anchored(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if _, err := regexp.Compile(text); err != nil { // an error without the anchors
		return nil, fmt.Errorf("%s=%s: %w", flag, text, err)
	}
	re, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", flag, text, err)
	}
	return re, nil
}

// machine is the host that a command reads: this one, or a replay.
type machine struct {
	*host.Host
	player *capture.Player // nil for a live host
	meta   capture.Meta    // of the replay
	config []byte          // of the replay: the configuration file in force there; nil: none
	past   time.Time       // time of the earlier round of a replay that is being played; zero: now
	close  func() error
}

// demo is the name of the built-in capture.
const demo = fixtures.Demo

// open opens the machine and reads the site configuration. The recorded rounds of a replay end at last.
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

// clock is the wall clock, or the time of the earlier round of a replay that is being played.
func (m *machine) clock() time.Time {
	if !m.past.IsZero() {
		return m.past
	}
	return time.Now()
}

// seek moves a replay to a point in time. It does nothing on a live host.
func (m *machine) seek(t time.Time) error {
	if m.player == nil {
		return nil
	}
	return m.player.Seek(t)
}

// recording names the replay that is evaluated; empty on a live host.
func (m *machine) recording(c *config) string {
	if m.player == nil {
		return ""
	}
	return fmt.Sprintf("%s, recorded %s", c.replay, m.meta.Time.UTC().Format(time.DateOnly))
}

// recorded is the replay that is served; nil on a live host.
func (m *machine) recorded() *rounds.Recording {
	if m.player == nil {
		return nil
	}
	return &rounds.Recording{Hostname: m.meta.Hostname, Date: m.meta.Time.UTC().Format(time.DateOnly)}
}

// playRounds calls evaluate for each round of a replay, before serving starts.
func (m *machine) playRounds(evaluate func() error) error {
	if m.player == nil {
		return nil
	}
	times := m.player.Times()
	for _, m.past = range times[:len(times)-1] {
		if err := evaluate(); err != nil {
			return err
		}
	}
	m.past = time.Time{}
	return evaluate()
}

// describe names the machine that is read, for the first line of the log and the page.
func (m *machine) describe(c *config) string {
	if m.player == nil {
		return "this host"
	}
	name := c.replay
	if name == demo {
		name = "the built-in demo node"
	}
	return fmt.Sprintf("a replay of %s (%s, recorded %s), not this host", name, m.meta.Hostname, m.meta.Time.UTC().Format(time.DateOnly))
}
