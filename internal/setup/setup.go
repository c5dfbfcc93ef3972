// Package setup compares the settings of a host with what RDMA training needs: the table Checks drives the program,
// docs/setup.md and the tests. It is pure: a reading of the node in, rows out. To add a setting, copy an entry of
// Checks, and list its files in Files if no collector reads them.
package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// Check is a setting.
type Check struct {
	ID     string
	Domain Domain
	Name   string // of the setting, as a noun
	Read   string // where it is read, with the version that has it
	Wanted string // what is wanted, and on what evidence
	Why    string // consequence of a difference
	// Remedy is the command that sets it. {device}, {port}, {netdev}, {address} and {wanted} are replaced by those of
	// the object.
	Remedy string
	Before string // what to know or to do before the command; empty: nothing
	Source string // of the wanted value
	Alert  string // raised where the difference contradicts the traffic; empty: none

	ofJob bool // it belongs to a job, or changes with the load: it is no metric, and not part of the hash of its domain
	find  func(*machine) []finding
}

// Domain is an area of settings.
type Domain string

// The domains, in the order in which they are shown.
const (
	Traffic   Domain = "traffic_class"
	Addresses Domain = "addresses"
	MTU       Domain = "mtu"
	Job       Domain = "job"
	Stack     Domain = "driver_stack"
	Limits    Domain = "limits"
	PCIe      Domain = "pcie"
	Host      Domain = "host"
	Storage   Domain = "storage"
	Partition Domain = "partitions"
)

// Domains lists them.
func Domains() []Domain {
	return []Domain{Traffic, Addresses, MTU, Job, Stack, Limits, PCIe, Host, Storage, Partition}
}

// Checks are the settings, by domain.
var Checks = slices.Concat(trafficChecks, addressChecks, mtuChecks, jobChecks, stackChecks, bootChecks, limitsChecks,
	pcieChecks, hostChecks, storageChecks, partitionChecks)

// Files are the files and directories that only this package needs. A * stands for each name in its directory, and an
// @ for each netdev of an RDMA device.
var Files = slices.Concat(trafficFiles, addressFiles, mtuFiles, jobFiles, stackFiles, bootFiles, pcieFiles,
	hostFiles, storageFiles)

// object is what has a setting. The zero object is the host.
type object struct {
	device  string // RDMA device
	port    int
	netdev  string
	address string // PCI address
	name    string // other name: of a process or module
}

func (o object) String() string {
	switch {
	case o.name != "":
		return o.name
	case o.netdev != "":
		return o.netdev
	case o.port != 0:
		return fmt.Sprintf("%s/%d", o.device, o.port)
	}
	return cmp.Or(o.device, o.address, "host")
}

// finding is what a check has found on an object.
type finding struct {
	object
	found   string // empty: unknown
	unknown string // the reason for that
	want    string // empty: whatever is found, unless the site configuration has a value
	meets   bool   // found is as wanted
	basis   hostdata.SetupBasis
	// contradicts: the difference contradicts the traffic or the jobs of the host: a warning, with the alert of the
	// check.
	contradicts bool
	lossy       []hostdata.LossyClass // the traffic that it contradicts
	conflicts   []string              // the addresses that it contradicts
	evidence    string
	because     string                   // why this is wanted, not where the site configuration wants something else
	remedy      string                   // instead of that of the check
	set         func(want string) string // the same, where the command does not contain the value as it is shown
	source      string                   // instead of that of the check
	// instead is what is possible where the value of the site configuration is not, and why; empty: it is.
	instead func(want string) (other, why string)
}

// machine is a node, with what several checks need of it, derived once.
type machine struct {
	*snapshot.Node
	wants       Wants // of the site configuration; nil: none
	files       hostdata.SetupFiles
	devices     []*snapshot.Device // physical RDMA devices that are read
	jobs        []jobProcess
	classes     []jobClass
	lanes       []*trafficLane
	ethers      []ether
	ipoibs      []ipoib
	infinibands []physicalPort
	nics        []placedNIC
}

// The objects of checks, for each.
func etherPorts(m *machine) []ether             { return m.ethers }
func ipoibInterfaces(m *machine) []ipoib        { return m.ipoibs }
func infiniBandPorts(m *machine) []physicalPort { return m.infinibands }
func nicsOf(m *machine) []placedNIC             { return m.nics }

func newMachine(n *snapshot.Node, wants Wants) *machine {
	m := &machine{Node: n, wants: wants, files: n.Setup.Files}
	m.devices = m.physical()
	m.jobs, m.classes = m.allJobs(), m.allClasses()
	m.lanes, m.ethers, m.ipoibs = m.allLanes(), m.allEthers(), m.allIPoIBs()
	m.infinibands, m.nics = m.allInfiniBands(), m.allNICs()
	return m
}

// Wants is the value of a setting in the site configuration; empty: none. "any" accepts whatever is found.
type Wants func(setting, device string, port int, netdev string) string

// Any is the value of the site configuration that accepts whatever is found.
const Any = "any"

// Evaluate compares the settings of a node. A node whose settings have not been read has no rows.
func Evaluate(n *snapshot.Node, wants Wants) (rows []hostdata.SetupRow) {
	if n.Setup == nil {
		return nil
	}
	m := newMachine(n, wants)
	for i := range Checks {
		c := &Checks[i]
		for _, f := range c.find(m) {
			if m.ignored(f.object) {
				continue
			}
			if row, ok := c.row(f, wants); ok {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// row evaluates a finding; ok is false if nothing is wanted of the object.
func (c *Check) row(f finding, wants Wants) (r hostdata.SetupRow, ok bool) {
	r = hostdata.SetupRow{
		Setting: c.ID, Domain: string(c.Domain), Object: f.String(), Device: f.device, Port: f.port,
		Found: f.found, Wanted: f.want, Basis: f.basis, State: hostdata.SetupDiffers, Severity: "info",
		Name: c.Name, Why: c.Why, Evidence: f.evidence, Source: cmp.Or(f.source, c.Source),
	}
	if f.meets {
		r.State = hostdata.SetupOK
	}
	if f.want != "" {
		r.Evidence = words.Join("; ", f.because, f.evidence)
	}
	if f.contradicts && !f.meets {
		r.Severity, r.Alert, r.Lossy, r.Conflicts = "warning", c.Alert, f.lossy, f.conflicts
	}
	if wants != nil {
		if want := wants(c.ID, f.device, f.port, f.netdev); want == Any {
			return r, false
		} else if want != "" {
			r.Wanted, r.Basis, r.Source, r.State = want, hostdata.SetupSite, "--config.file", hostdata.SetupDiffers
			r.Evidence = f.evidence
			other, why := "", ""
			if f.instead != nil {
				other, why = f.instead(want)
			}
			if other != "" {
				r.Wanted, r.Evidence = other, words.Join("; ", why, f.evidence)
			}
			if other != "" || values.Accepts(want, f.found) {
				r.State, r.Severity, r.Alert, r.Lossy, r.Conflicts = hostdata.SetupOK, "info", "", nil, nil
			}
		}
	}
	if f.found == "" {
		r.State, r.Severity, r.Alert, r.Lossy, r.Conflicts, r.Evidence = hostdata.SetupUnknown, "info",
			"", nil, nil, f.unknown
	}
	if r.Wanted == "" && f.found != "" {
		return r, false
	}
	if r.State == hostdata.SetupDiffers {
		remedy, value := cmp.Or(f.remedy, c.Remedy), r.Wanted
		if r.Basis == hostdata.SetupSite { // the first of several values
			first, _, _ := strings.Cut(value, "|")
			value = strings.TrimSpace(first)
		}
		if f.set != nil {
			remedy = f.set(value)
		}
		r.Remedy, r.Before = fill(remedy, f.object, value), c.Before
	}
	return r, true
}

// fill replaces the parts of a remedy that depend on the object. Names that others choose are quoted for a shell.
func fill(text string, o object, wanted string) string {
	return strings.NewReplacer(
		"{device}", values.Shell(o.device), "{port}", fmt.Sprint(o.port), "{netdev}", values.Shell(o.netdev),
		"{address}", values.Shell(o.address), "{wanted}", values.Shell(wanted)).Replace(text)
}

// ignored reports whether the site configuration ignores the device or port of an object.
func (m *machine) ignored(o object) bool {
	return m.InfiniBand != nil && o.device != "" && m.InfiniBand.IsIgnored(o.device, o.port)
}

// physical returns the physical RDMA devices that are read.
func (m *machine) physical() (out []*snapshot.Device) {
	if m.InfiniBand == nil {
		return nil
	}
	for i := range m.InfiniBand.Devices {
		d := &m.InfiniBand.Devices[i]
		if d.FunctionType == snapshot.Physical && !d.ManagesNVLink {
			out = append(out, d)
		}
	}
	return out
}

// physicalPort is a port of a physical device.
type physicalPort struct {
	*snapshot.Device
	*snapshot.Port
}

func (p physicalPort) object() object { return object{device: p.Name, port: p.Number} }

// ports returns the ports of the physical devices.
func (m *machine) ports() (out []physicalPort) {
	for _, d := range m.devices {
		for i := range d.Ports {
			out = append(out, physicalPort{d, &d.Ports[i]})
		}
	}
	return out
}

// each returns a check of objects: each has a finding, unless find returns false.
func each[T any](objects func(*machine) []T, find func(*machine, T) (finding, bool)) func(*machine) []finding {
	return func(m *machine) (out []finding) {
		for _, x := range objects(m) {
			if f, ok := find(m, x); ok {
				out = append(out, f)
			}
		}
		return out
	}
}

// Deviation is a setting that differs, as a metric and as a row that stands for several objects. The object is "all"
// if it differs on all objects that have it, with the same value.
type Deviation struct {
	Row     hostdata.SetupRow // of the first object
	Object  string
	Objects []string
	// Remedies are those of the objects, each once.
	Remedies []string
}

// Deviations returns the settings in a state, joined by setting and value.
func Deviations(rows []hostdata.SetupRow, state hostdata.SetupState) (out []Deviation) {
	objects := map[string]int{}
	for _, r := range rows {
		objects[r.Setting]++
	}
	key := func(r *hostdata.SetupRow) string {
		return r.Setting + "\x00" + r.Found + "\x00" + r.Wanted + "\x00" + r.Evidence
	}
	at := map[string]int{}
	for _, r := range rows {
		if r.State != state {
			continue
		}
		i, known := at[key(&r)]
		if !known {
			i = len(out)
			at[key(&r)] = i
			out = append(out, Deviation{Row: r})
		}
		out[i].Objects = append(out[i].Objects, r.Object)
		if r.Remedy != "" && !slices.Contains(out[i].Remedies, r.Remedy) {
			out[i].Remedies = append(out[i].Remedies, r.Remedy)
		}
	}
	for i := range out {
		d := &out[i]
		switch {
		case len(d.Objects) == 1:
			d.Object = d.Objects[0]
		case len(d.Objects) == objects[d.Row.Setting]:
			d.Object = "all"
		default:
			d.Object = strings.Join(d.Objects, ",")
		}
	}
	return out
}

// OfHost returns the rows without job settings, which change with each job. Metrics are made from these rows.
func OfHost(rows []hostdata.SetupRow) (out []hostdata.SetupRow) {
	for _, r := range rows {
		if !slices.ContainsFunc(Checks, func(c Check) bool { return c.ID == r.Setting && (c.ofJob || c.Domain == Job) }) {
			out = append(out, r)
		}
	}
	return out
}

// OfJobs returns the rows of the settings of NCCL.
func OfJobs(rows []hostdata.SetupRow) (out []hostdata.SetupRow) {
	for _, r := range rows {
		if r.Domain == string(Job) {
			out = append(out, r)
		}
	}
	return out
}
