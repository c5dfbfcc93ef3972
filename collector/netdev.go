package collector

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

const netDir = "sys/class/net/"

func portDir(device string, n int) string {
	return classDir + "/" + device + "/ports/" + strconv.Itoa(n)
}

func byNumber(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x - y
}

// ARPHRD types of include/uapi/linux/if_arp.h.
const (
	arphrdEther      = "1"
	arphrdInfiniBand = "32"
)

// netdevs finds the netdev of a port, or the members of its bond: from netlink, else the PCI function's netdev with the port's dev_port,
// else the netdev of the first GID.
func (r *reader) netdevs(d *snapshot.Device, n int, linkLayer, fromNetlink string) []snapshot.Netdev {
	name := fromNetlink
	if name == "" {
		name = r.netdevOfFunction(d, n, linkLayer)
	}
	if name == "" {
		name = r.netdevOfGID(portDir(d.Name, n))
	}
	if name == "" {
		return nil
	}
	var out []snapshot.Netdev
	members := r.bondMembers(d.Name, name)
	for _, m := range members {
		out = append(out, snapshot.Netdev{Name: m, Member: len(members) > 1})
	}
	return out
}

// portNetdev is a netdev of a physical port: that of an RDMA port, or a member of its bond.
type portNetdev struct {
	port         int
	layer        string // link_layer of the port
	name, driver string
}

// exposesPhysicalPort are drivers whose virtual functions expose the physical port behind them: mana has no other functions.
var exposesPhysicalPort = map[string]bool{"mana": true}

// wireNetdevs finds the netdevs of a device that belong to a physical port. Those of virtual functions and sub-functions show at most the
// port of their physical function and are left out, as are those of functions that manage NVLink switches. Ports appear a moment after
// the device: whole is false without any, and the next round reads again.
func (o *Options) wireNetdevs(r *reader, device string) (out []portNetdev, whole bool) {
	kind, function := r.function(classDir + "/" + device)
	if kind != snapshot.Physical && !(kind == snapshot.Virtual && exposesPhysicalPort[r.driver(function)]) || o.nvlink.manages(r, device) {
		return nil, true
	}
	numbers := r.ports(device)
	d := &snapshot.Device{Name: device}
	for _, n := range numbers {
		r.begin(host.SourceIdentity)
		layer := r.optional(portDir(device, n) + "/link_layer")
		r.begin(host.SourceNetdev)
		for _, nd := range r.netdevs(d, n, layer, "") {
			out = append(out, portNetdev{n, layer, nd.Name, r.driver(netDir + nd.Name + "/device")})
		}
	}
	return out, len(numbers) > 0
}

// uplink is the phys_port_name of a physical port; representors of virtual functions have names like pf0vf1.
var uplink = regexp.MustCompile(`^p\d+$`)

func (r *reader) netdevOfFunction(d *snapshot.Device, n int, linkLayer string) string {
	dir := classDir + "/" + d.Name + "/device/net"
	names, err := r.h.Files.List(dir)
	if err != nil {
		return ""
	}
	want := arphrdEther
	if linkLayer == "InfiniBand" {
		want = arphrdInfiniBand
	}
	var found []string
	for _, name := range names {
		nd := dir + "/" + name
		if r.optional(nd+"/type") != want || linkLayer == "InfiniBand" && r.isChild(nd, name) {
			continue
		}
		if port, err := strconv.Atoi(r.optional(nd + "/dev_port")); err != nil || port != n-1 {
			continue
		}
		found = append(found, name)
	}
	if len(found) <= 1 || linkLayer == "InfiniBand" { // representors are Ethernet, and never alone
		return strings.Join(found[:min(len(found), 1)], "")
	}
	return r.uplinkOf(dir, found)
}

// isChild reports whether an IPoIB interface is that of a further P_Key: ib0.8001, or under any name an interface linked to another. The
// kernel reads both numbers without a lock.
func (r *reader) isChild(dir, name string) bool {
	if strings.Contains(name, ".") {
		return true
	}
	link, own := r.count(dir+"/iflink"), r.count(dir+"/ifindex")
	return link != nil && own != nil && *link != *own
}

// uplinkOf is the first netdev that is no representor. The kernel takes rtnl for a port's name, and restarts the read while the lock is
// held elsewhere.
func (r *reader) uplinkOf(dir string, names []string) string {
	files := r.h.Files
	ports := make([]string, len(names)) // empty: no name
	if r.underRTNL(host.SourcePortNames, len(names), func() {
		for i, name := range names {
			if b, err := files.Read(dir+"/"+name+"/phys_port_name", nil); err == nil {
				ports[i] = string(bytes.TrimSpace(b))
			}
		}
	}) != nil {
		return ""
	}
	r.begin(host.SourceNetdev)
	for i, port := range ports {
		if port == "" || uplink.MatchString(port) {
			return names[i]
		}
	}
	return ""
}

func (r *reader) netdevOfGID(dir string) string {
	name, _ := r.entry(dir+"/gid_attrs/ndevs", "0")
	return name
}

// bondMembers returns the members of the bond that a netdev is, or belongs to, if the RDMA device represents the bond (RoCE LAG); else
// the netdev. A member whose PCI function has its own RDMA device belongs to that device.
func (r *reader) bondMembers(device, netdev string) []string {
	if strings.Contains(netdev, "/") {
		return nil
	}
	bond := netdev
	if target, err := r.h.Files.Link(netDir + netdev + "/master"); err == nil {
		bond = path.Base(target)
	}
	names, err := r.h.Files.List(netDir + bond)
	if err != nil || !slices.Contains(names, "bonding") {
		return []string{netdev}
	}
	var out []string
	for _, name := range names {
		m, ok := strings.CutPrefix(name, "lower_") // not bonding/slaves, which takes rtnl
		if !ok {
			continue
		}
		own, err := r.h.Files.List(netDir + m + "/device/infiniband")
		if err != nil || slices.Equal(own, []string{device}) {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return []string{netdev}
	}
	slices.Sort(out)
	return out
}

// iffUp is IFF_UP of include/uapi/linux/if.h.
const iffUp = 1

// withLink reads the kernel's own link data of the netdevs, without a lock and without a query to a driver. Flags are read after the
// counts: a carrier lost administratively is then read together with the netdev down.
func (r *reader) withLink(netdevs []snapshot.Netdev) []snapshot.Netdev {
	if len(netdevs) == 0 {
		return nil
	}
	r.begin(host.SourceNetdev)
	out := slices.Clone(netdevs)
	for i := range out {
		nd := &out[i]
		dir := netDir + nd.Name
		nd.Index = r.count(dir + "/ifindex")
		nd.CarrierDowns, nd.CarrierUps = r.count(dir+"/carrier_down_count"), r.count(dir+"/carrier_up_count")
		nd.Admin = nil
		if flags, err := strconv.ParseUint(r.optional(dir+"/flags"), 0, 64); err == nil {
			up := flags&iffUp != 0
			nd.Admin = &up
		}
	}
	return out
}

// operational are the values of operstate that decide whether an interface carries traffic. The kernel takes no rtnl for it.
var operational = map[string]bool{"up": true, "down": false, "lowerlayerdown": false, "dormant": false}

// withIPoIB reads whether the IPoIB interfaces of an InfiniBand port are operationally up.
func (r *reader) withIPoIB(netdevs []snapshot.Netdev) {
	for i := range netdevs {
		if up, known := operational[r.optional(netDir+netdevs[i].Name+"/operstate")]; known {
			netdevs[i].Joined = &up
		}
	}
}

// count reads an optional count.
func (r *reader) count(path string) *uint64 {
	if n, err := strconv.ParseUint(r.optional(path), 10, 64); err == nil {
		return &n
	}
	return nil
}
