package machine

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/collector"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/peers"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
)

// Config holds the flags of all commands: host, devices, collectors.
type Config struct {
	Paths            rooted.Paths
	Replay           string
	StateDir         string
	Peers            *peers.Table // of the daemon; nil: none outlives the collectors
	includeText      string
	excludeText      string
	include, exclude *regexp.Regexp
	disableDefaults  bool
	chosen           map[string]*choice
	Timeout          time.Duration
	MaxProcs         int
	SampleInterval   time.Duration // serve only
	ModuleInterval   time.Duration // serve only
	GPUInterval      time.Duration // serve only
	ListenLLDP       bool          // serve only
	GPUMode          string
	bufinfo          bool
	ebpfMode         string
	askSubnet        bool
	madMode          string
	Functions        string
	Limits           rounds.Limits
	Rules            *rulefiles.Files // that are evaluated; nil: the built-in ones
	Site             SiteFile
	NCCL             gdr.Job          // topo only
	Around           func(*host.Host) // replaces sources of a host that is opened; nil: none
}

// choice is --collector.NAME and --no-collector.NAME.
type choice struct {
	on, set bool
}

// Flags adds the flags.
func (c *Config) Flags(a *kingpin.Application) {
	a.Flag("path.rootfs", "Root of the host file system.").Default("/").StringVar(&c.Paths.RootFS)
	a.Flag("path.sysfs", "/sys of the host. Default: sys below --path.rootfs.").PlaceHolder("DIR").StringVar(&c.Paths.Sys)
	a.Flag("path.procfs", "/proc of the host. Default: proc below --path.rootfs.").
		PlaceHolder("DIR").StringVar(&c.Paths.Proc)
	a.Flag("helper.socket",
		"Socket of rdma_exporter helper, which reads processes, vital product data and DMA-BUFs in place of this process.").
		PlaceHolder("PATH").StringVar(&c.Paths.Helper)
	a.Flag("replay", "Run on a capture instead of this host; \"demo\" is the built-in one.").
		PlaceHolder("FILE").StringVar(&c.Replay)
	a.Flag("state.dir",
		"State directory: known links and devices, alert state, incident captures. Written by serve and fabric only.").
		Default("/var/lib/rdma_exporter").StringVar(&c.StateDir)
	a.Flag("config.file",
		"Site configuration: expected rates, ignored devices, cabling, settings. YAML, docs/configuration.md.").
		PlaceHolder("FILE").StringVar(&c.Site.Name)
	a.Flag("device.include", "Read only RDMA devices whose name matches this regular expression (anchored).").
		PlaceHolder("REGEX").StringVar(&c.includeText)
	a.Flag("device.exclude", "Never open RDMA devices whose name matches this regular expression (anchored).").
		PlaceHolder("REGEX").StringVar(&c.excludeText)
	a.Flag("device.functions",
		"Metrics of virtual functions and subfunctions beside their physical function: rules (identity, state and the counters that rules read), or all.").
		Default(functionsRules).EnumVar(&c.Functions, functionsRules, functionsAll)
	a.Flag("limit.devices",
		"Maximum number of RDMA devices to read; those beyond it are left out, virtual functions and subfunctions first. 0 disables.").
		Default("1024").IntVar(&c.Limits.Devices)
	a.Flag("limit.series", "Maximum number of series of the collectors; the series of whole devices beyond it are left out, those of virtual functions and subfunctions first. 0 disables.").
		Default("50000").IntVar(&c.Limits.Series)
	a.Flag("collector.disable-defaults", "Disable all collectors that are not enabled explicitly.").
		BoolVar(&c.disableDefaults)
	c.chosen = map[string]*choice{}
	for _, x := range collector.All(collector.Options{}) {
		ch := &choice{on: true}
		c.chosen[x.Name] = ch
		a.Flag("collector."+x.Name, "Collect "+x.Help+".").Default("true").IsSetByUser(&ch.set).BoolVar(&ch.on)
	}
	a.Flag("collector.gpu.mode",
		"GPU metrics: fabric (NVLink, PCIe, errors, power, utilization), or full (also temperature, memory and clock limits, as exposed by a DCGM exporter).").
		Default(gpuModeFabric).EnumVar(&c.GPUMode, gpuModeFabric, gpuModeFull)
	a.Flag("collector.infiniband.mad", "Read the counters of InfiniBand ports with one or two management datagrams per port, with 64 bits and FEC errors, instead of 18 files, each of which is a firmware command: auto (where the umad devices can be opened: as root or in their group), on (a failure is reported), off.").
		Default("auto").EnumVar(&c.madMode, "auto", "on", "off")
	a.Flag("collector.neighbour.subnet", "Query the far end of each InfiniBand link (one directed hop) for identity, enabled link settings and counters, and the subnet manager for its state: up to ten datagrams a minute for each link. Requires root or the group of the umad devices. Off by default.").
		BoolVar(&c.askSubnet)
	a.Flag("collector.gdr.bufinfo", "Read the DMA-BUFs of GPUs in debugfs if a job is suspected of staging, at most once in 10m. The kernel blocks jobs during the read. Off by default.").BoolVar(&c.bufinfo)
	a.Flag("collector.gdr.pod-resources", "Socket of the kubelet's PodResources API, usually /var/lib/kubelet/pod-resources/kubelet.sock: namespaces and names of pods, found by their GPUs and virtual functions. Requires root. Off by default: UIDs of pods only.").
		PlaceHolder("PATH").StringVar(&c.Paths.PodResources)
	a.Flag("collector.gdr.job-names",
		"Read the names of Slurm jobs and the users of processes, and export them (rdma_job_info). Off by default: job numbers only.").
		BoolVar(&c.Paths.JobNames)
	a.Flag("collector.ebpf", "Observe registrations of memory with RDMA devices, and their asynchronous events, by eBPF programs in the kernel: auto (with CAP_BPF and CAP_PERFMON), on (a failure for lack of them is reported), off. serve only.").
		Default(string(collector.EBPFAuto)).
		EnumVar(&c.ebpfMode, string(collector.EBPFAuto), string(collector.EBPFOn), string(collector.EBPFOff))
	a.Flag("collect.timeout", "Timeout of a collection.").Default("10s").DurationVar(&c.Timeout)
	a.Flag("runtime.gomaxprocs", "Maximum number of CPUs used at a time (GOMAXPROCS).").Default("2").IntVar(&c.MaxProcs)
}

// madModes are the values of --collector.infiniband.mad.
var madModes = map[string]collector.MADCounters{
	"auto": collector.CountersIfPermitted, "on": collector.CountersByMAD, "off": collector.CountersOfFiles,
}

// Values of --collector.gpu.mode.
const (
	gpuModeFabric = "fabric"
	gpuModeFull   = "full"
)

// Values of --device.functions.
const (
	functionsRules = "rules"
	functionsAll   = "all"
)

// isOn reports whether a collector is enabled.
func (c *Config) isOn(x *collector.Collector) bool {
	ch := c.chosen[x.Name]
	if c.disableDefaults && !ch.set {
		return false
	}
	return ch.on
}

// Disable disables a collector.
func (c *Config) Disable(name string) { *c.chosen[name] = choice{set: true} }

// Selects returns a flag that selects another machine, or other parts of it, than the running exporter reads; empty:
// none.
func (c *Config) Selects() string {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"--replay", c.Replay != ""},
		{"--config.file", c.Site.Name != ""},
		{"--path.rootfs", c.Paths.RootFS != "/"},
		{"--path.sysfs", c.Paths.Sys != ""},
		{"--path.procfs", c.Paths.Proc != ""},
		{"--device.include", c.include != nil},
		{"--device.exclude", c.exclude != nil},
		{"--collector.disable-defaults", c.disableDefaults},
	} {
		if f.set {
			return f.name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.chosen)) {
		if c.chosen[name].set {
			return "--collector." + name
		}
	}
	return ""
}

// Check validates what kingpin does not.
func (c *Config) Check() (err error) {
	if c.include, err = anchored("--device.include", c.includeText); err != nil {
		return err
	}
	if c.exclude, err = anchored("--device.exclude", c.excludeText); err != nil {
		return err
	}
	return command.Checks{
		{c.Timeout <= 0, fmt.Errorf("--collect.timeout=%s: must be greater than 0", c.Timeout)},
		{c.Limits.Devices < 0, fmt.Errorf("--limit.devices=%d: must be at least 1, or 0 for no limit", c.Limits.Devices)},
		{c.Limits.Series < 0, fmt.Errorf("--limit.series=%d: must be at least 1, or 0 for no limit", c.Limits.Series)},
		{c.MaxProcs < 1, fmt.Errorf("--runtime.gomaxprocs=%d: must be at least 1", c.MaxProcs)},
	}.First()
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

// partMetrics returns the metrics to read of virtual functions and subfunctions whose physical function is on the host:
// those that the rules need. They are determined once, and only on a host with such functions, since parsing the rules
// takes longer than a round.
func (c *Config) partMetrics() func() map[string]bool {
	if c.Functions == functionsAll {
		return nil
	}
	return sync.OnceValue(func() map[string]bool {
		files, err := c.Rules, error(nil)
		if files == nil {
			files, err = rulefiles.Read(nil, "")
		}
		if err != nil { // reported where the rules are loaded
			return nil
		}
		read, _ := files.Metrics()
		return read
	})
}

// Collectors returns the enabled collectors.
func (c *Config) Collectors(m *Machine, memory *expect.Memory) ([]*collector.Collector, error) {
	return c.Enabled(collector.All(c.Options(m, memory)))
}

// Enabled returns the enabled ones of all collectors.
func (c *Config) Enabled(all []*collector.Collector) ([]*collector.Collector, error) {
	var on []*collector.Collector
	for _, x := range all {
		if c.isOn(x) {
			on = append(on, x)
		}
	}
	if len(on) == 0 {
		return nil, errors.New("all collectors are disabled: enable at least one with --collector.NAME")
	}
	return on, nil
}

// Options returns the options of the collectors of a machine.
func (c *Config) Options(m *Machine, memory *expect.Memory) collector.Options {
	return collector.Options{
		Include: c.include, Exclude: c.exclude, Site: &c.Site.Store, Hostname: m.Hostname(), Memory: memory, NCCL: c.NCCL,
		Peers:          c.Peers,
		SampleInterval: c.SampleInterval, ModuleInterval: c.ModuleInterval, GPUInterval: c.GPUInterval,
		GPUFull: c.GPUMode == gpuModeFull, Bufinfo: c.bufinfo, EBPF: collector.EBPF(c.ebpfMode),
		PartMetrics: c.partMetrics(), MaxDevices: c.Limits.Devices,
		ListenLLDP: c.ListenLLDP, AskSubnet: c.askSubnet || m.Player != nil, MADCounters: c.madCounters(m),
	}
}

// madCounters returns the source of the counters of InfiniBand ports. A replay has them as recorded.
func (c *Config) madCounters(m *Machine) collector.MADCounters {
	if m.Player != nil {
		return collector.CountersRecorded
	}
	return madModes[c.madMode]
}
