// Package traits lists what hosts of one kind have alike: settings, firmware, drivers, the place of their devices. The
// table ofPorts and its neighbours drive the metric, the rules on a fleet and rdma_exporter compare. It is pure. To add
// a trait, copy an entry.
package traits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// Trait is a value of a setting on a host.
type Trait struct {
	Setting string `json:"setting"` // id: of setup.Checks, or of this package
	// Role is of ports and devices; the module of a driver; the job of a setting of a job; else empty.
	Role    string   `json:"role,omitempty"`
	Value   string   `json:"value"`   // never empty
	Objects []string `json:"objects"` // that have the value, sorted: mlx5_0/1, a netdev, GPU 0, host
	Affects Effect   `json:"affects,omitempty"`
	// Live: it changes without anyone setting it, like the rate of a link. It is compared, and no metric.
	Live bool `json:"live,omitempty"`
}

// Effect is what a host with another value than its peers breaks.
type Effect string

// The effects.
const (
	Lossless  Effect = "lossless"   // RoCE without loss: priorities and their pause
	GPUDirect Effect = "gpu_direct" // GPUDirect RDMA
)

// Host is what is compared of a host.
type Host struct {
	// Kind is equal on hosts of one kind: server, GPUs, boards of compute ports; empty: unknown.
	Kind   string  `json:"kind"`
	Traits []Trait `json:"traits"` // sorted by setting, role and value
}

// Of returns the traits of a node. What is unknown is absent.
func Of(n *snapshot.Node) Host {
	h := Host{Kind: kind(n)}
	all := map[[3]string]*Trait{}
	for _, t := range ofEach(n) {
		if t.Value = words.OneLine(t.Value); t.Value == "" {
			continue
		}
		key := [3]string{t.Setting, t.Role, t.Value}
		if all[key] == nil {
			all[key] = &t
			continue
		}
		all[key].Objects = append(all[key].Objects, t.Objects...)
	}
	for _, t := range all {
		slices.Sort(t.Objects)
		t.Objects = slices.Compact(t.Objects)
		h.Traits = append(h.Traits, *t)
	}
	slices.SortFunc(h.Traits, func(a, b Trait) int {
		return cmp.Or(cmp.Compare(a.Setting, b.Setting), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Value, b.Value))
	})
	return h
}

// IsPart reports whether a device did not answer: traits of others would stand for all.
func IsPart(n *snapshot.Node) bool {
	return slices.ContainsFunc(n.Devices, func(d snapshot.DeviceRead) bool { return d.Stuck || d.Late || d.Discarded })
}

// Files are the files that only this package needs, as setup.Files.
var Files = []string{vendorFile, productFile}

const (
	vendorFile  = "sys/class/dmi/id/sys_vendor"
	productFile = "sys/class/dmi/id/product_name"
)

// kind names the server, the models of its GPUs and the boards of its compute ports, each once: what is missing for a
// time must not change it.
func kind(n *snapshot.Node) string {
	var parts []string
	if n.Setup != nil {
		vendor, _ := n.Setup.Files.Text(vendorFile)
		product, _ := n.Setup.Files.Text(productFile)
		parts = append(parts, strings.TrimSpace(vendor+" "+product))
	}
	models := map[string]bool{}
	if n.GPUs != nil {
		for i := range n.GPUs.GPUs {
			models[n.GPUs.GPUs[i].Model] = true
		}
	}
	boards := map[string]bool{}
	for d, p := range ports(n) {
		if p.Role == computeRole {
			boards[cmp.Or(d.BoardID, d.HCAType)] = true
		}
	}
	for _, names := range []map[string]bool{models, boards} {
		parts = append(parts, strings.Join(slices.Sorted(maps.Keys(names)), " + "))
	}
	return words.OneLine(words.Join(", ", parts...))
}

const (
	computeRole = "compute"
	infiniBand  = "InfiniBand"
)

// ports returns the ports of physical devices that the site configuration does not ignore.
func ports(n *snapshot.Node) func(func(*snapshot.Device, *snapshot.Port) bool) {
	return func(yield func(*snapshot.Device, *snapshot.Port) bool) {
		if n.InfiniBand == nil {
			return
		}
		for d, p := range snapshot.PortsOf(n.InfiniBand.Devices) {
			if d.FunctionType != snapshot.Physical || d.ManagesNVLink || n.InfiniBand.IsIgnored(d.Name, p.Number) {
				continue
			}
			if !yield(d, p) {
				return
			}
		}
	}
}

// list collects traits.
type list struct {
	all   []Trait
	roles map[string]string // by device: of its first port
	read  map[string]bool   // settings of the tables of this package
}

// add adds the value of a trait of an object; empty: unknown.
func (l *list) add(e entry, role, object, value string) {
	l.read[e.setting] = true
	if value != "" {
		l.all = append(l.all, Trait{
			Setting: e.setting, Role: role, Value: value, Objects: []string{object}, Affects: e.affects, Live: e.live,
		})
	}
}

// ofEach returns the traits of each object.
func ofEach(n *snapshot.Node) []Trait {
	l := &list{roles: map[string]string{}, read: map[string]bool{}}
	l.addPorts(n)
	l.addQoS(n)
	l.addEthernet(n)
	l.addNICs(n)
	l.addGPUs(n)
	l.addHost(n)
	l.addSetup(n)
	return l.all
}

func (l *list) addPorts(n *snapshot.Node) {
	for d, p := range ports(n) {
		l.roles[d.Name] = cmp.Or(l.roles[d.Name], p.Role)
		for _, x := range ofPorts {
			l.add(x.entry, p.Role, fmt.Sprintf("%s/%d", d.Name, p.Number), x.value(d, p))
		}
		for k := range p.Netdev {
			if p.LinkLayer != infiniBand { // that of IPoIB: ipoib_mtu
				l.add(entry{setting: "netdev_mtu"}, p.Role, p.Netdev[k].Name, number(p.Netdev[k].MTU))
			}
		}
	}
}

// addSetup adds the settings of check --setup that no table here has.
func (l *list) addSetup(n *snapshot.Node) {
	if n.Setup == nil {
		return
	}
	for _, r := range n.Setup.Rows {
		if r.State == hostdata.SetupUnknown || l.read[r.Setting] || counted[r.Setting] {
			continue
		}
		role := l.roles[r.Device]
		if r.Domain == string(setup.Job) {
			role = r.Object
		}
		l.all = append(l.all, Trait{
			Setting: r.Setting, Role: role, Value: r.Found, Objects: []string{r.Object}, Affects: effects[r.Setting],
		})
	}
}

// counted are settings of check --setup whose value depends on the load, names parts of the host, or may contain the
// name of a user.
var counted = map[string]bool{
	"irq_locality": true, "arp_of_shared_subnets": true, "mesh_subnets": true, "nccl_topo_file": true,
	"memlock_of_jobs": true, "job_traffic_class": true,
	"pkey_membership": true, "cnp_priority_apart": true, // told by others
}

// effects are those of settings of check --setup.
var effects = map[string]Effect{
	"default_traffic_class": Lossless, "ets_class_of_rdma": Lossless, "iommu_mode": GPUDirect,
	"peermem_persistent": GPUDirect,
}

// entry is what all entries of the tables have.
type entry struct {
	setting string
	affects Effect
	live    bool
}

var ofPorts = []struct {
	entry
	value func(*snapshot.Device, *snapshot.Port) string
}{
	{entry{setting: "firmware"}, func(d *snapshot.Device, _ *snapshot.Port) string {
		return words.Join(" ", cmp.Or(d.BoardID, d.HCAType), d.Firmware)
	}},
	{entry{setting: "link_layer"}, func(_ *snapshot.Device, p *snapshot.Port) string { return p.LinkLayer }},
	{entry{setting: "rate", live: true}, func(_ *snapshot.Device, p *snapshot.Port) string { return gigabits(p.Rate) }},
	{entry{setting: "state", live: true}, func(_ *snapshot.Device, p *snapshot.Port) string {
		return snapshot.NameOf(snapshot.PortStates, p.State)
	}},
	{entry{setting: "rdma_active_mtu"}, func(_ *snapshot.Device, p *snapshot.Port) string {
		if p.Settings == nil { // that of RoCE follows from netdev_mtu
			return ""
		}
		return number(p.Settings.MTU)
	}},
	{entry{setting: "pkeys"}, func(_ *snapshot.Device, p *snapshot.Port) string {
		if p.LinkLayer != infiniBand {
			return ""
		}
		keys := words.Map(slices.Sorted(slices.Values(p.PKeyTable)), func(k uint16) string { return fmt.Sprintf("%#04x", k) })
		return strings.Join(slices.Compact(keys), " ")
	}},
	{entry{setting: "fec", live: true}, func(_ *snapshot.Device, p *snapshot.Port) string {
		if p.FEC == nil {
			return ""
		}
		return p.FEC.Mode
	}},
}

// number is empty for nil.
func number(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}

func gigabits(rate *float64) string {
	if rate == nil {
		return ""
	}
	return strconv.FormatFloat(*rate/1e9, 'g', -1, 64) + " Gb/s"
}
