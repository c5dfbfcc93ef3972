package collector

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// netdevs finds the netdev of a port, or the members of its bond: told by netlink, else the PCI function's netdev with the
// port's dev_port, else the netdev of the first GID.
func (r *reader) netdevs(d *snapshot.Device, n int, linkLayer, told string) []snapshot.Netdev {
	name := told
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
	for _, m := range r.bondMembers(d.Name, name) {
		out = append(out, snapshot.Netdev{Name: m})
	}
	return out
}

// uplink is the phys_port_name of a physical port; representors of virtual functions have pf0vf1 and the like.
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
	for _, name := range names {
		nd := dir + "/" + name
		if r.optional(nd+"/type") != want || strings.Contains(name, ".") { // ib0.8001: a child interface of a P_Key
			continue
		}
		if port, err := strconv.Atoi(r.optional(nd + "/dev_port")); err != nil || port != n-1 {
			continue
		}
		if phys, err := r.h.Files.Read(nd+"/phys_port_name", r.buf); err == nil {
			if !uplink.MatchString(strings.TrimSpace(string(phys))) {
				continue
			}
		}
		return name
	}
	return ""
}

func (r *reader) netdevOfGID(dir string) string {
	name, _ := r.entry(dir+"/gid_attrs/ndevs", "0")
	return name
}

// bondMembers returns the members of the bond that a netdev is, or is in, if the RDMA device stands for the bond (RoCE
// LAG); else the netdev. A member whose PCI function has an RDMA device of its own is that device's.
func (r *reader) bondMembers(device, netdev string) []string {
	if strings.Contains(netdev, "/") {
		return nil
	}
	bond := netdev
	if target, err := r.h.Files.Link(netDir + netdev + "/master"); err == nil {
		bond = path.Base(target)
	}
	b, err := r.h.Files.Read(netDir+bond+"/bonding/slaves", r.buf)
	if err != nil {
		return []string{netdev}
	}
	var out []string
	for _, m := range strings.Fields(string(b)) {
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

// withLink reads what the kernel itself knows of the netdevs' links, which takes no lock and asks no driver. The flags are read
// after the counts: who finds a carrier lost by hand finds the netdev down.
func (r *reader) withLink(netdevs []snapshot.Netdev) []snapshot.Netdev {
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

// count reads a count that may not be there.
func (r *reader) count(path string) *uint64 {
	if n, err := strconv.ParseUint(r.optional(path), 10, 64); err == nil {
		return &n
	}
	return nil
}
