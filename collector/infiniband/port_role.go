package infiniband

import (
	"cmp"
	"context"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/role"
	"rdma_exporter/internal/snapshot"
)

var portPeersActive = metric.Beside("rdma_port_info", metric.Port("rdma_port_peers_active",
	"1 for a port that is not ACTIVE although its peers are: more than half, and at least three, of the compute ports at the same position of their card. Absent for others.",
	"the other ports of the host"))

// roleAfter is how long evidence has to last before a compute role is stored: at boot, NICs register one after the
// other.
const roleAfter = 10 * time.Minute

// machineFacts are the inputs of roles other than the NICs, read each minute.
type machineFacts struct {
	last   reading.Last
	gpus   []string       // paths of their functions
	routed []string       // netdevs below the interface of the default route
	own    *nccl.Topology // of the host; nil: none
	tree   role.Machine

	version uint64 // counts changes
}

// read reads the GPUs, the switches, the topology file and the default route.
func (f *machineFacts) read(r reading.Reads, job gdr.Job) {
	f.last.Read(r.Now())
	f.gpus, f.routed = sysfs.GPUs(r.Host, r), routedNetdevs(r)
	models := f.tree.Bridges
	if models == nil {
		models = map[string]pci.Bridge{}
	}
	f.own, f.tree = nil, role.Machine{GPUPaths: f.gpus}
	if len(f.gpus) == 0 {
		return
	}
	f.own = sysfs.ReadTopology(r, cmp.Or(job.Env["NCCL_TOPO_FILE"], sysfs.ReadNCCLConf(r)["NCCL_TOPO_FILE"]))
	f.tree.Bridges = models
	f.tree.Virtual = pci.Virtual(r.Optional("sys/class/dmi/id/sys_vendor"), r.Optional("sys/class/dmi/id/product_name"))
	for _, p := range f.gpus {
		g, emulated := sysfs.ReadGPUPlace(r, p)
		f.tree.Virtual = f.tree.Virtual || emulated
		f.tree.GPUs = append(f.tree.GPUs, g)
		for i := 0; i < len(g.Place.Chain)-1; i++ {
			if address := g.Place.Chain[i]; models[address] == (pci.Bridge{}) {
				models[address] = sysfs.ReadBridge(r, sysfs.PCIDir+address)
			}
		}
	}
}

// routedNetdevs returns the netdevs below the interface of the IPv4 default route, else of the IPv6 one, in the network
// namespace of the host.
func routedNetdevs(r reading.Reads) (netdevs []string) {
	for _, parse := range []struct {
		file  string
		route func(fields []string) (netdev string, sample uint64, ok bool)
	}{{"route", ipv4Default}, {"ipv6_route", ipv6Default}} {
		text := r.Optional("proc/1/net/" + parse.file)
		if text == "" {
			text = r.Optional("proc/net/" + parse.file)
		}
		best, lowest := "", uint64(0)
		for line := range strings.Lines(text) {
			if netdev, sample, ok := parse.route(strings.Fields(line)); ok && (best == "" || sample < lowest) {
				best, lowest = netdev, sample
			}
		}
		if best != "" {
			return netdevsBelow(r, best, 4)
		}
	}
	return nil
}

// routeUp is RTF_UP (include/uapi/linux/route.h).
const routeUp = 1

// ipv4Default parses a line of /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask …
// (fib_route_seq_show, net/ipv4/fib_trie.c).
func ipv4Default(f []string) (netdev string, sample uint64, ok bool) {
	if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
		return "", 0, false
	}
	flags, err := strconv.ParseUint(f[3], 16, 32)
	sample, err2 := strconv.ParseUint(f[6], 10, 32)
	return f[0], sample, err == nil && err2 == nil && flags&routeUp != 0
}

// ipv6Default parses a line of /proc/net/ipv6_route: destination, prefix length, source, prefix length, next hop,
// metric, references, use, flags, device, numbers in hex (rt6_native_seq_show, net/ipv6/ip6_fib.c). Unreachable ones
// are on lo.
func ipv6Default(f []string) (netdev string, sample uint64, ok bool) {
	if len(f) < 10 || strings.Trim(f[0], "0") != "" || f[1] != "00" || f[9] == "lo" {
		return "", 0, false
	}
	sample, err := strconv.ParseUint(f[5], 16, 32)
	return f[9], sample, err == nil
}

// netdevsBelow returns an interface and its lower interfaces: members of a bond or a bridge, the parent of a VLAN.
func netdevsBelow(r reading.Reads, netdev string, depth int) []string {
	out := []string{netdev}
	if strings.ContainsRune(netdev, '/') {
		return nil
	}
	names, err := r.Host.Files.List("sys/class/net/" + netdev)
	if err != nil || depth == 0 {
		return out
	}
	for _, n := range names {
		if lower, ok := strings.CutPrefix(n, "lower_"); ok {
			out = append(out, netdevsBelow(r, lower, depth-1)...)
		}
	}
	return out
}

// roles keeps the evidence for the roles of ports.
type roles struct {
	ports map[roleKey]*roleState
	due   time.Time // when a role is to be stored; zero: none is pending
}

type roleKey struct {
	deviceKey
	port int
}

type roleState struct {
	since   time.Time // start of uninterrupted evidence for compute; zero: none
	learned role.Verdict
}

// assignRoles sets the roles of all ports. configured returns the configured role of a port, empty where none is
// pinned.
func (c *infiniBand) assignRoles(
	now time.Time, devices []snapshot.Device, configured func(i, j int) (pinned string, ignored bool),
) {
	nics := c.nics(devices, configured)
	verdicts := role.Of(&c.machine.tree, nics)
	c.roles.due = time.Time{}
	for i := range devices {
		d := &devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			v := c.learn(now, d, p.Number, verdicts[i][j])
			if d.ManagesNVLink {
				v = role.Verdict{Role: pci.NVLinkManagement, Source: role.VPD}
			}
			if pinned, _ := configured(i, j); pinned != "" {
				v = role.Verdict{Role: pci.Role(pinned), Source: role.Site}
			}
			p.Role, p.RoleSource = string(v.Role), string(v.Source)
		}
	}
	peers := role.Peers(nics, func(i, j int) bool { return devices[i].Ports[j].Role == string(pci.Compute) })
	for i := range devices {
		for j := range devices[i].Ports {
			_, ignored := configured(i, j)
			p := &devices[i].Ports[j]
			p.PeersActive = peers[i][j] && !ignored && !sysfs.IsActive(p)
		}
	}
}

// learn returns the role of a port, and stores a compute role whose evidence has lasted for roleAfter.
func (c *infiniBand) learn(now time.Time, d *snapshot.Device, port int, v role.Verdict) role.Verdict {
	key := roleKey{keyOf(d), port}
	st := counters.Entry(c.roles.ports, key)
	id := lastingID(d, port, "")
	if id != "" { // rdma_exporter accept removes it there
		st.learned = c.memory.Role(id)
	}
	if v.Role != pci.Compute {
		st.since = time.Time{}
		return st.learned.Keep(v)
	}
	switch {
	case st.since.IsZero():
		st.since = now
		fallthrough
	case now.Sub(st.since) < roleAfter:
		if until := st.since.Add(roleAfter); c.roles.due.IsZero() || until.Before(c.roles.due) {
			c.roles.due = until
		}
	case st.learned != v:
		st.learned = v
		if id != "" {
			c.memory.Learn(id, expect.RoleRecord{Device: d.Name, Port: port, Verdict: v})
		}
	}
	return v
}

// waiting reports whether a role is to be stored now.
func (r *roles) waiting(now time.Time) bool { return !r.due.IsZero() && !now.Before(r.due) }

// nics returns the devices as inputs of roles.
func (c *infiniBand) nics(
	devices []snapshot.Device, configured func(i, j int) (pinned string, ignored bool),
) []role.NIC {
	out := make([]role.NIC, len(devices))
	perCard := portsPerCard(devices)
	routed := map[string]bool{} // cards
	for i := range devices {
		d := &devices[i]
		numa, err := strconv.Atoi(d.NUMANode)
		if err != nil {
			numa = -1
		}
		n := role.NIC{
			NIC: gdr.NIC{Device: d.Name}, Path: d.Path, Emulated: d.Emulated,
			Function: strings.TrimPrefix(path.Ext(d.PCIAddress), "."), Apart: isPart(d),
		}
		n.Board, n.PortsPerCard = boardOf(d), perCard[cardOf(d)]
		if d.Path != "" {
			n.Place = pci.PlaceOf(d.Path, numa)
		}
		if d.ManagesNVLink {
			n.Role = pci.NVLinkManagement
		}
		for j := range d.Ports {
			p := &d.Ports[j]
			if _, ignored := configured(i, j); ignored {
				n.Apart = true
			}
			n.LinkLayer = p.LinkLayer
			n.Ports = append(n.Ports, gdr.Port{Number: p.Number, Active: sysfs.IsActive(p)})
			n.Rate = max(n.Rate, c.memory.Mark(lastingID(d, p.Number, "")).Rate, rateKnown(p))
			if slices.ContainsFunc(p.Netdev, func(nd snapshot.Netdev) bool {
				return slices.Contains(c.machine.routed, nd.Name)
			}) {
				routed[cardOf(d)] = true
			}
		}
		out[i] = n
	}
	for i := range devices {
		out[i].DefaultRoute = routed[cardOf(&devices[i])]
	}
	return out
}

// rateKnown returns the highest known rate of a port in bits per second: the rate of its link, or the capability of its
// netdevs.
func rateKnown(p *snapshot.Port) (rate float64) {
	if sysfs.IsActive(p) {
		rate = counters.ValueOf(p.Rate)
	}
	for i := range p.Netdev {
		rate = max(rate, counters.ValueOf(p.Netdev[i].CapableRate))
	}
	return rate
}

// readMachine reads the inputs of roles other than the NICs. The topology file of a job is used if the host has none.
func (c *infiniBand) readMachine(ctx context.Context, h *host.Host) {
	now, before := h.Now(), c.machine
	if c.machine.last.Due(now, shared.SlowInterval) {
		facts := c.machine
		if _, err := reading.OfHost(ctx, h, "pci", source.PCI, func(r reading.Reads) {
			facts.read(r, c.nccl)
		}); err == nil {
			c.machine = facts
		}
	}
	c.machine.tree.Topology = cmp.Or(c.machine.own, c.lastRound.JobTopology())
	if !reflect.DeepEqual(c.machine.tree, before.tree) || !slices.Equal(c.machine.routed, before.routed) {
		c.machine.version++
	}
}
