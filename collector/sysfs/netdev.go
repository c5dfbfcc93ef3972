package sysfs

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// ARPHRD types of include/uapi/linux/if_arp.h.
const (
	arphrdEther      = "1"
	arphrdInfiniBand = "32"
)

// NetdevsOf finds the netdev of a port, or the members of its bond: from netlink, else the PCI function's netdev with
// the port's dev_port, else the netdev of the first GID.
func NetdevsOf(reader *reading.Reader, d *snapshot.Device, n int, linkLayer, fromNetlink string) []snapshot.Netdev {
	r := reader.From(source.Netdev)
	name := fromNetlink
	if name == "" {
		name = netdevOfFunction(r, d, n, linkLayer)
	}
	if name == "" {
		name = netdevOfGID(r, PortDir(d.Name, n))
	}
	if name == "" {
		return nil
	}
	var out []snapshot.Netdev
	members := bondMembers(r, d.Name, name)
	for _, m := range members {
		out = append(out, snapshot.Netdev{Name: m, Member: len(members) > 1})
	}
	return out
}

// uplink is the phys_port_name of a physical port; representors of virtual functions have names like pf0vf1.
var uplink = regexp.MustCompile(`^p\d+$`)

func netdevOfFunction(r reading.Reads, d *snapshot.Device, n int, linkLayer string) string {
	dir := ClassDir + "/" + d.Name + "/device/net"
	names, err := r.Host.Files.List(dir)
	if err != nil {
		return ""
	}
	want := arphrdEther
	if linkLayer == "InfiniBand" {
		want = arphrdInfiniBand
	}
	var found, others []string
	for _, name := range names {
		nd := dir + "/" + name
		if r.Optional(nd+"/type") != want || linkLayer == "InfiniBand" && isChild(r, nd, name) {
			continue
		}
		switch port, err := strconv.Atoi(r.Optional(nd + "/dev_port")); {
		case err != nil:
		case port == n-1:
			found = append(found, name)
		default:
			others = append(others, name)
		}
	}
	// The netdev of a function with one port may have the number that the port has on its card (bnxt_en, bnxt_hwrm.c).
	if len(found) == 0 && len(others) == 1 && len(PortNumbers(r, d.Name)) == 1 {
		return others[0]
	}
	if len(found) <= 1 || linkLayer == "InfiniBand" { // representors are Ethernet, and never alone
		return strings.Join(found[:min(len(found), 1)], "")
	}
	return uplinkOf(r, dir, found)
}

// isChild reports whether an IPoIB interface is that of a further P_Key: ib0.8001, or under any name an interface
// linked to another. The kernel reads both numbers without a lock.
func isChild(r reading.Reads, dir, name string) bool {
	if strings.Contains(name, ".") {
		return true
	}
	link, own := r.Count(dir+"/iflink"), r.Count(dir+"/ifindex")
	return link != nil && own != nil && *link != *own
}

// uplinkOf returns the first netdev that is no representor. The kernel takes rtnl for a port's name, and restarts the
// read while the lock is held elsewhere.
func uplinkOf(r reading.Reads, dir string, names []string) string {
	files := r.Host.Files
	ports := make([]string, len(names)) // empty: no name
	if r.UnderRTNL(source.PortNames, len(names), func() {
		for i, name := range names {
			if b, err := files.Read(dir+"/"+name+"/phys_port_name", nil); err == nil {
				ports[i] = string(bytes.TrimSpace(b))
			}
		}
	}) != nil {
		return ""
	}
	for i, port := range ports {
		if port == "" || uplink.MatchString(port) {
			return names[i]
		}
	}
	return ""
}

func netdevOfGID(r reading.Reads, dir string) string {
	name, _ := r.TableEntry(dir+"/gid_attrs/ndevs", "0")
	return name
}

// bondMembers returns the members of the bond that a netdev is, or belongs to, if the RDMA device represents the bond
// (RoCE LAG); else the netdev. A member whose PCI function has its own RDMA device belongs to that device.
func bondMembers(r reading.Reads, device, netdev string) []string {
	if strings.Contains(netdev, "/") {
		return nil
	}
	bond := netdev
	if target, err := r.Host.Files.Link(NetDir + netdev + "/master"); err == nil {
		bond = path.Base(target)
	}
	names, err := r.Host.Files.List(NetDir + bond)
	if err != nil || !slices.Contains(names, "bonding") {
		return []string{netdev}
	}
	var out []string
	for _, name := range names {
		m, ok := strings.CutPrefix(name, "lower_") // not bonding/slaves, which takes rtnl
		if !ok {
			continue
		}
		own, err := r.Host.Files.List(NetDir + m + "/device/infiniband")
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

// WithLink reads the kernel's own link data of the netdevs, without a lock and without a query to a driver. Flags are
// read after the counts: a carrier lost administratively is then read together with the netdev down.
func WithLink(reader *reading.Reader, netdevs []snapshot.Netdev) []snapshot.Netdev {
	if len(netdevs) == 0 {
		return nil
	}
	r, out := reader.From(source.Netdev), slices.Clone(netdevs)
	for i := range out {
		nd := &out[i]
		nd.Index, nd.CarrierDowns, nd.CarrierUps, nd.Admin = nil, nil, nil, nil
		r.Optionals(NetDir+nd.Name, linkFiles, func(name string, text []byte) { linkFields[name](nd, text) })
	}
	return out
}

// linkFiles are the files of WithLink, in the order in which they are read.
var linkFiles = []string{"ifindex", "carrier_down_count", "carrier_up_count", "flags"}

var linkFields = map[string]func(*snapshot.Netdev, []byte){
	"ifindex":            func(nd *snapshot.Netdev, text []byte) { nd.Index = reading.CountOf(text) },
	"carrier_down_count": func(nd *snapshot.Netdev, text []byte) { nd.CarrierDowns = reading.CountOf(text) },
	"carrier_up_count":   func(nd *snapshot.Netdev, text []byte) { nd.CarrierUps = reading.CountOf(text) },
	"flags": func(nd *snapshot.Netdev, text []byte) {
		if flags, err := strconv.ParseUint(string(text), 0, 64); err == nil {
			nd.Admin = new(flags&iffUp != 0)
		}
	},
}

// operational are the values of operstate that decide whether an interface carries traffic. The kernel takes no rtnl
// for it.
var operational = map[string]bool{"up": true, "down": false, "lowerlayerdown": false, "dormant": false}

// WithIPoIB reads whether the IPoIB interfaces of an InfiniBand port are operationally up.
func WithIPoIB(r *reading.Reader, netdevs []snapshot.Netdev) {
	files := r.From(source.Netdev)
	for i := range netdevs {
		if up, known := operational[files.Optional(NetDir+netdevs[i].Name+"/operstate")]; known {
			netdevs[i].Joined = &up
		}
	}
}
