package gpudirect

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// socketUse measures the traffic of the kernel over hardware network interfaces, while a job may use sockets.
type socketUse struct {
	bytes  meters             // by interface and direction
	limits map[string]float64 // bits per second above which an interface carries data of a job; 0: not counted
}

// kernelTraffic are the drivers of RDMA devices whose network interfaces count the traffic of the kernel alone in
// rx_bytes and tx_bytes, with the function that fills them. Others count that of the port, RDMA included (cxgb4, qede,
// ionic; mlx5 in switchdev mode: mlx5e_get_stats), or carry RDMA as traffic of their own (rxe, siw).
var kernelTraffic = map[string]bool{
	"mlx5_core": true, // mlx5e_fold_sw_stats64, en_main.c; IPoIB: mlx5i_get_stats, ipoib.c: its rings
	"mlx4_core": true, // mlx4_en_fold_software_stats, en_port.c: its rings
	"bnxt_en":   true, // bnxt_get_ring_stats, bnxt.c: contexts of its rings; bnxt_re has contexts of its own
	"ice":       true, // ice_get_stats64, ice_main.c: its rings
	"i40e":      true, // i40e_get_netdev_stats_struct, i40e_main.c: its rings
	"hns3":      true, // hns3_nic_get_stats64, hns3_enet.c: its rings
	"mana":      true, // mana_get_stats64, mana_en.c: its rings
	"hfi1":      true, // IPoIB alone: ipoib_get_stats, ipoib_main.c
}

func (u *socketUse) clear() {
	clear(u.bytes)
	clear(u.limits)
}

// read records the bytes of interfaces that count the traffic of the kernel. It sums them up without rtnl.
func (u *socketUse) read(ctx context.Context, h *host.Host, n *snapshot.Node, devices []snapshot.Device) {
	issues, err := reading.OfHost(ctx, h, "network interfaces", source.Netdev, func(r reading.Reads) {
		names, err := r.Host.Files.List(path.Clean(sysfs.NetDir))
		if err != nil {
			r.Issue(err)
			return
		}
		now, there := r.Now(), map[string]float64{}
		for _, name := range names {
			limit, known := u.limits[name]
			if !known {
				limit, known = limitOf(r, devices, name)
			}
			if known {
				there[name] = limit
			}
			if limit == 0 {
				continue
			}
			for _, counter := range byteCounters {
				if n := r.Decimal(sysfs.NetDir + name + "/statistics/" + counter); n != nil {
					u.bytes.add(name+"/"+counter, now, float64(*n))
				}
			}
		}
		u.limits = there
		u.bytes.keep(now)
	})
	if err == nil {
		n.Issues = append(n.Issues, issues...)
	}
}

var byteCounters = []string{"rx_bytes", "tx_bytes"}

// limitOf returns the limit of an interface, 0 for one that does not count: software, or with traffic of RDMA. ok is
// false where rtnl is unavailable, which the kernel takes for the speed of an interface: it is read once.
func limitOf(r reading.Reads, devices []snapshot.Device, name string) (bits float64, ok bool) {
	dir := sysfs.NetDir + name + "/"
	function, err := r.Host.Files.Resolve(dir + "device")
	if err != nil {
		return 0, true
	}
	var rate float64
	for d, p := range snapshot.PortsOf(devices) {
		if !hasNetdev(d, p, path.Base(function), name) {
			continue
		}
		if !kernelTraffic[d.Driver] || inSwitchdev(r, d) {
			return 0, true
		}
		if p.Rate != nil {
			rate = *p.Rate
		}
	}
	if rate > 0 {
		return transport.SocketBits(rate), true
	}
	files, text := r.Host.Files, ""
	if r.UnderRTNL(source.PortNames, 1, func() {
		if b, err := files.Read(dir+"speed", nil); err == nil { // an error: without link
			text = string(bytes.TrimSpace(b))
		}
	}) != nil {
		return 0, false // text may still be written to
	}
	megabits, err := strconv.ParseFloat(text, 64)
	if err != nil {
		megabits = 0 // unknown; so is -1
	}
	return transport.SocketBits(megabits * 1e6), true
}

// inSwitchdev reports whether a device of mlx5 is in switchdev mode, where its counters are the device's and not a
// port's (mlx5_ib_counters_init, counters.c).
func inSwitchdev(r reading.Reads, d *snapshot.Device) bool {
	_, err := r.Host.Files.List(sysfs.ClassDir + "/" + d.Name + "/hw_counters")
	return err == nil && d.Driver == "mlx5_core"
}

// hasNetdev reports whether a network interface belongs to a port: on the function of its device, or a member of its
// bond.
func hasNetdev(d *snapshot.Device, p *snapshot.Port, address, netdev string) bool {
	for i := range p.Netdev {
		if p.Netdev[i].Name == netdev {
			return true
		}
	}
	return d.PCIAddress == address
}

// busy reports whether an interface exceeds its limit, in either direction: of those named, or of all if none of them
// counts (a bond). Nil: none does, and at least one is unknown.
func (u *socketUse) busy(names string) *bool {
	used := strings.Fields(names)
	named := slices.ContainsFunc(used, func(name string) bool { return u.limits[name] > 0 })
	fast, known, counted := false, true, false
	for name, limit := range u.limits {
		if limit == 0 || named && !slices.Contains(used, name) {
			continue
		}
		above := u.bytes.above(limit/8, name+"/rx_bytes", name+"/tx_bytes")
		counted, known = true, known && above != nil
		fast = fast || above != nil && *above
	}
	if !fast && !(known && counted) {
		return nil
	}
	return &fast
}
