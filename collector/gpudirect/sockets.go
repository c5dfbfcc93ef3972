package gpudirect

import (
	"bytes"
	"context"
	"path"
	"strconv"

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
// ionic), or carry RDMA as traffic of their own (rxe, siw). So do mlx5, bnxt_en and ice in switchdev mode.
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
				if bytes := r.Number(sysfs.NetDir+name+"/statistics", counter); bytes != nil {
					u.bytes.add(name+"/"+counter, now, float64(*bytes))
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
// false where rtnl is unavailable, which the kernel takes for speed and switch of an interface: they are read once.
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
		if !kernelTraffic[d.Driver] {
			return 0, true
		}
		if p.Rate != nil {
			rate = *p.Rate
		}
	}
	files, read := r.Host.Files, [2]string{}
	if r.UnderRTNL(source.PortNames, len(read), func() {
		for i, file := range []string{"phys_switch_id", "speed"} { // an error: none, or without link
			if b, err := files.Read(dir+file, nil); err == nil {
				read[i] = string(bytes.TrimSpace(b))
			}
		}
	}) != nil {
		return 0, false // read may still be written to
	}
	if read[0] != "" {
		return 0, true
	}
	if megabits, err := strconv.ParseFloat(read[1], 64); err == nil && rate == 0 { // -1 is unknown
		rate = megabits * 1e6
	}
	return transport.SocketBits(rate), true
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

// busy reports whether an interface exceeds its limit, in either direction. Nil: none does, and at least one is
// unknown.
func (u *socketUse) busy() *bool {
	fast, known, counted := false, true, false
	for name, limit := range u.limits {
		if limit == 0 {
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
