// Package setup compares settings of the host with what RDMA training wants.
package setup

import (
	"context"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/traits"
	"rdma_exporter/internal/words"
)

// ofSetup is for metrics of settings that differ.
func ofSetup(d *metric.Desc) *metric.Desc {
	return metric.Beside("rdma_setup_objects", metric.Asks(source.Setup, d))
}

var (
	setupInfo = metric.Of("rdma_device_info", ofSetup(metric.Host("rdma_setup_info",
		"Setting that differs from what is wanted of it, always 1; those of jobs are left out. The wanted value and the remedy are in check --setup. object: a device, port or netdev, several joined by commas, all for every object that has the setting, host. Absent for settings that are as wanted or unknown.",
		"docs/setup.md", "domain", "setting", "object", "value")))
	lossyClass = metric.Of("rdma_port_pfc_enabled", ofSetup(metric.Port("rdma_port_lossy_class_info",
		"Traffic class of a running job, or of the port, that leads to a priority without PFC on a lossless port, always 1. workload: the job, empty for the class of the port. setting: the variable or file. Absent where there is none.",
		"docs/setup.md, job_traffic_class and default_traffic_class", "netdev", "priority", "workload",
		"setting", "class")))
	jobSetting = metric.Of("rdma_device_info", ofSetup(metric.Host("rdma_job_setting_info",
		"Setting of NCCL in a running job that differs from what is wanted of it, always 1; check --setup and topo have the wanted value. value is empty for nccl_topo_file, a path. Absent for settings that are as wanted or unknown.",
		"docs/setup.md, job", "workload", "setting", "value")))
	addressConflicts = metric.Of("rdma_device_info", ofSetup(metric.Host("rdma_host_address_conflicts",
		"IPv4 neighbours with different MAC addresses on RDMA netdevs of one subnet whose arp_ignore or arp_announce permits that any port answers; 0 where the settings do not. The neighbours are read each hour. Absent where no two RDMA netdevs are in one subnet.",
		"docs/setup.md, arp_of_shared_subnets")))
	setupObjects = metric.Host("rdma_setup_objects",
		"Number of objects of this host (ports, netdevs, devices, GPUs, the host) that have a value of a setting. Hosts of one kind are compared by it: docs/setup.md. role: of ports and devices; the module of a driver; the workload for a setting of its NCCL; else empty. affects: what a host with another value than its peers breaks, lossless (RoCE without loss), gpu_direct, or empty. Long values end in a hash. Absent for values that are unknown.",
		"docs/setup.md", "setting", "role", "value", "affects")
	hostKind = metric.Host("rdma_host_kind_info",
		"Kind of this host, always 1: server (DMI), models of GPUs, boards of compute ports, each once. Hosts of one kind are compared by rdma_setup_objects. kind is empty where nothing of it is known.",
		"/sys/class/dmi/id/{sys_vendor,product_name}", "kind")
)

// setupInterval is how long settings are kept: they change by hand.
const setupInterval = time.Hour

// maxSetupFiles limits the paths that a pattern of setup.Files expands to.
const maxSetupFiles = 512

// setupState keeps the files of settings, and the rows of the last evaluation.
type setupState struct {
	conf *shared.SiteConfig
	mad  []string                      // hostdata.Setup.MADFlags
	kept reading.Kept[hostdata.Setup]  // without rows
	last reading.Kept[*hostdata.Setup] // a copy, renewed each minute

	mu        sync.Mutex
	evaluated *hostdata.Setup // last with its rows
	of        *hostdata.Setup // last without them
	differ    []setup.Deviation
	lossy     []hostdata.LossyClass
	jobs      [][]string // labels of the settings of jobs that differ
	conflicts *float64   // addresses; nil: no netdevs in one subnet
	host      traits.Host
}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	c := &setupState{conf: with.Site, mad: madFlags(with)}
	return &shared.Collector{
		Name:   "setup",
		Help:   "settings of the host for RDMA training, compared with what is wanted: docs/setup.md",
		Descs:  []*metric.Desc{setupInfo, setupObjects, hostKind, lossyClass, jobSetting, addressConflicts},
		Read:   c.read,
		Emit:   func(*snapshot.Node, metric.Sink) {},
		Derive: c.derive,
	}
}

// madFlags returns the flags that need management datagrams. A replay has those of the recording, if there are any.
func madFlags(with *shared.State) (out []string) {
	if with.MADCounters == shared.CountersByMAD {
		out = append(out, "--collector.infiniband.mad=on")
	}
	if with.AskSubnet && with.MADCounters != shared.CountersRecorded {
		out = append(out, "--collector.neighbour.subnet")
	}
	return out
}

func (c *setupState) read(ctx context.Context, h *host.Host, n *snapshot.Node, done func(error)) {
	now := h.Now()
	if c.kept.Due(now, setupInterval) {
		var kept hostdata.Setup
		_, err := reading.OfHost(ctx, h, "setup", source.Setup, func(r reading.Reads) {
			kept.Files = map[string]hostdata.SetupFile{}
			for _, pattern := range slices.Concat(setup.Files, traits.Files) {
				readSetupFiles(r, pattern, kept.Files)
			}
			kept.Interrupts = readInterrupts(r)
			kept.MADFlags = c.mad
			readLaunchers(r.Reader, &kept)
		})
		if err != nil {
			done(err)
			return
		}
		c.kept.Keep(kept, now)
		c.last.Expire()
	}
	if c.last.Due(now, shared.SlowInterval) {
		c.last.Keep(new(c.kept.Value), now)
	}
	n.Setup = c.last.Value
	done(nil)
}

// readLaunchers searches for services that start jobs, on hosts with RDMA devices.
func readLaunchers(r *reading.Reader, out *hostdata.Setup) {
	if devices, err := r.Host.Devices(); r.Host.Launchers == nil || err != nil || len(devices) == 0 {
		return
	}
	r.From(source.Processes).Ask(1)
	found, whole, err := r.Host.Launchers.Launchers(r.Ctx, slices.Concat(setup.Launchers, setup.Services))
	switch {
	case err == nil && whole:
		out.Launchers = found
	case err == nil:
		out.Launchers, out.LaunchersUnread = found, "not completed"
	case !access.IsAbsent(err):
		out.LaunchersUnread = string(access.ReasonOf(err))
	}
}

// readSetupFiles reads the files and directories that a pattern of setup.Files stands for.
func readSetupFiles(r reading.Reads, pattern string, out map[string]hostdata.SetupFile) {
	for _, p := range setupPaths(r, pattern, out) {
		r.Ask(1)
		if strings.HasSuffix(pattern, "/") {
			names, err := r.Host.Files.List(p)
			addSetupFile(p, strings.Join(names, "\n"), err, out)
			continue
		}
		b, err := r.Host.Files.Read(p, nil)
		addSetupFile(p, strings.TrimSpace(string(b)), err, out)
	}
}

// setupPaths expands a pattern. Directories that could not be read are added to out.
func setupPaths(r reading.Reads, pattern string, out map[string]hostdata.SetupFile) []string {
	paths := []string{""}
	for element := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, p := range paths {
			switch element {
			case "*":
				r.Ask(1)
				names, err := r.Host.Files.List(p)
				if err != nil && !access.IsAbsent(err) {
					out[p] = hostdata.SetupFile{Unread: string(access.ReasonOf(err))}
				}
				for _, name := range names {
					next = append(next, path.Join(p, name))
				}
			case "@":
				for _, n := range setupPaths(r, sysfs.ClassDir+"/*/device/net/*", out) {
					if name := path.Join(p, path.Base(n)); !slices.Contains(next, name) {
						next = append(next, name)
					}
				}
			default:
				next = append(next, path.Join(p, element))
			}
		}
		paths = next[:min(len(next), maxSetupFiles)]
	}
	return paths
}

func addSetupFile(p, text string, err error, out map[string]hostdata.SetupFile) {
	switch {
	case err == nil:
		out[p] = hostdata.SetupFile{Text: text}
	case !access.IsAbsent(err) && access.ReasonOf(err) != access.Invalid && access.ReasonOf(err) != access.Unsupported:
		out[p] = hostdata.SetupFile{Unread: string(access.ReasonOf(err))}
	}
}

// derive evaluates the settings on the complete node, each minute.
func (c *setupState) derive(n *snapshot.Node, s metric.Sink) {
	if n.Setup == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of != n.Setup {
		evaluated := *n.Setup
		evaluated.Rows = setup.Evaluate(n, c.wants(n))
		c.evaluated, c.of = &evaluated, n.Setup
		c.lossy = setup.LossyClasses(evaluated.Rows)
		c.jobs = jobSettings(evaluated.Rows)
		c.conflicts = nil
		if addresses, ok := setup.Conflicts(evaluated.Rows); ok {
			c.conflicts = new(float64(len(addresses)))
		}
		c.differ = setup.Deviations(setup.OfHost(evaluated.Rows), hostdata.SetupDiffers)
		n.Setup = c.evaluated                          // its rows are traits
		if c.host.Traits == nil || !traits.IsPart(n) { // a device that does not answer has what it had
			c.host = traits.Of(n)
		}
	}
	n.Setup = c.evaluated
	for _, d := range c.differ {
		s.Emit(setupInfo, 1, d.Row.Domain, d.Row.Setting, d.Object, d.Row.Found)
	}
	for _, l := range c.lossy {
		s.Emit(lossyClass, 1, l.Device, strconv.Itoa(l.Port), l.Netdev, strconv.Itoa(l.Priority), l.Job, l.Setting,
			strconv.Itoa(l.Class))
	}
	for _, labels := range c.jobs {
		s.Emit(jobSetting, 1, labels...)
	}
	if c.conflicts != nil {
		s.Emit(addressConflicts, *c.conflicts)
	}
	s.Emit(hostKind, 1, c.host.Kind)
	for _, t := range c.host.Traits {
		if !t.Live {
			s.Emit(setupObjects, float64(len(t.Objects)), t.Setting, t.Role, shortValue(t.Value), string(t.Affects))
		}
	}
}

// maxValue is the length in bytes from which a value is cut.
const maxValue = 120

// shortValue cuts a long value, and keeps it apart from others by a hash.
func shortValue(value string) string {
	if len(value) <= maxValue {
		return value
	}
	h := fnv.New32a()
	h.Write([]byte(value))
	return fmt.Sprintf("%s… %08x", words.Cut(value, maxValue), h.Sum32())
}

// jobSettings returns the labels of the settings of jobs that differ, each once.
func jobSettings(rows []hostdata.SetupRow) (out [][]string) {
	for _, r := range setup.OfJobs(rows) {
		if r.State != hostdata.SetupDiffers {
			continue
		}
		value := r.Found
		if r.Setting == "nccl_topo_file" { // may contain the name of a user
			value = ""
		}
		labels := []string{r.Object, r.Setting, value}
		if !slices.ContainsFunc(out, func(o []string) bool { return slices.Equal(o, labels) }) {
			out = append(out, labels)
		}
	}
	return out
}

// wants has the values of settings in the site configuration.
func (c *setupState) wants(n *snapshot.Node) setup.Wants {
	conf := c.conf.Current()
	if conf == nil || len(conf.Setup) == 0 {
		return nil
	}
	subjects := []site.Subject{}
	if n.InfiniBand != nil {
		for i := range n.InfiniBand.Devices {
			subjects = append(subjects, c.conf.Subjects(&n.InfiniBand.Devices[i])...)
		}
	}
	return func(setting, device string, port int, netdev string) string {
		i := slices.IndexFunc(subjects, func(s site.Subject) bool { return s.Device == device && s.Port == port })
		subject := site.Subject{Hostname: c.conf.Hostname, Device: device, Port: port}
		if i >= 0 {
			subject = subjects[i]
		}
		if netdev != "" && port != 0 {
			subject.Netdevs = []string{netdev}
		}
		return conf.Want(setting, subject)
	}
}
