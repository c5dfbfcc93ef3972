package infiniband

import (
	"strconv"
	"strings"
)

// linkRate is the content of ports/N/rate.
type linkRate struct {
	bits  float64 // per second, of data
	lanes uint64
	speed string // SDR … XDR; empty on kernels without a name for SDR
}

// parseRate parses "400 Gb/sec (4X NDR)" (drivers/infiniband/core/sysfs.c, rate_show): rate in Gb/s with or without
// ".5", number of lanes, name of the speed.
func parseRate(s string) (linkRate, bool) {
	gb, rest, ok := strings.Cut(strings.TrimSpace(s), " Gb/sec (")
	if !ok {
		return linkRate{}, false
	}
	f, err := strconv.ParseFloat(gb, 64)
	if err != nil || !(f > 0 && f < 1e6) || strings.Trim(gb, "0123456789.") != "" {
		return linkRate{}, false
	}
	inside, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return linkRate{}, false
	}
	width, speed, ok := strings.Cut(inside, "X")
	if !ok {
		return linkRate{}, false
	}
	lanes, err := strconv.ParseUint(width, 10, 8)
	if err != nil || lanes == 0 {
		return linkRate{}, false
	}
	speed = strings.TrimSpace(speed)
	if strings.Trim(speed, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return linkRate{}, false
	}
	return linkRate{bits: f * 1e9, lanes: lanes, speed: speed}, true
}

// isGeneric reports whether a driver takes its rate from ib_get_eth_speed (drivers/infiniband/core/verbs.c), which has
// no lanes, at most 100 Gb/s on Linux 6.1, and takes rtnl on each read. The netdev's rate is used instead.
func isGeneric(driver string) bool {
	switch driver {
	case "bnxt_en", "ice", "i40e", "irdma", "idpf", "hns3", "hns_roce", "ionic", "mana", "cxgb4", "erdma", "rxe", "siw":
		return true
	}
	return false
}

// printsUnknown reports whether a rate is what mlx5 prints if the kernel does not support the link's mode: SDR for a
// speed without a name (XDR on Linux 6.1), 4X QDR on Ethernet (800G on 6.1). Devices of these kinds support neither.
func printsUnknown(hcaType, linkLayer string, r linkRate) bool {
	switch hcaType {
	case "MT4131", "MT4133", "MT4135", "MT8449", "MT41695": // ConnectX-8, -9, -10, -10 C2C, BlueField-4
		return r.speed == "SDR" || linkLayer == "Ethernet" && r.speed == "QDR" && r.lanes == 4
	}
	return false
}
