package pci

import (
	"strconv"
	"strings"
)

// Link is one end of a PCIe link. Unknown or "none" is 0.
type Link struct {
	Speed    float64 // current transfers per second and lane
	Width    uint64  // current lanes
	MaxSpeed float64 // of this end
	MaxWidth uint64
}

// ParseSpeed parses current_link_speed and max_link_speed: "16.0 GT/s PCIe", on old kernels "8 GT/s". "Unknown" is 0.
func ParseSpeed(text string) float64 {
	number, _, ok := strings.Cut(text, " GT/s")
	gt, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(gt > 0 && gt <= 1024) {
		return 0
	}
	return gt * 1e9
}

// noLink is the width of functions without a link capability (drivers/pci/pci-sysfs.c prints the unsigned field).
const noLink = 255

// ParseWidth parses current_link_width and max_link_width. 0 is no link (virtual functions), 255 no link capability.
func ParseWidth(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n == noLink {
		return 0
	}
	return n
}

// perLane is the bandwidth of a lane, in bits per second: PCIE_SPEED2MBS_ENC of drivers/pci/pci.h. Packet overhead is
// not subtracted.
var perLane = map[float64]float64{
	2.5e9: 2000e6, 5e9: 4000e6, 8e9: 7876e6, 16e9: 15753e6, 32e9: 31507e6, 64e9: 64000e6,
}

func bandwidth(speed float64, width uint64) float64 { return perLane[speed] * float64(width) }

// Hop is a function on the path from a root port to a device, with its end of a link: the link below for root ports and
// downstream ports, the link above for upstream ports and devices.
type Hop struct {
	Address string
	Link
}

// Available returns the bandwidth of a path, in bits per second, and the limiting function, the one nearest to the root
// if there are several (pcie_bandwidth_available in drivers/pci/pci.c). ok is false if a hop is unknown.
func Available(path []Hop) (bits float64, limitedBy string, ok bool) {
	for i := len(path) - 1; i >= 0; i-- {
		bw := bandwidth(path[i].Speed, path[i].Width)
		if bw == 0 {
			return 0, "", false
		}
		if limitedBy == "" || bw <= bits {
			bits, limitedBy = bw, path[i].Address
		}
	}
	return bits, limitedBy, limitedBy != ""
}

// Capable returns the bandwidth that a device supports, in bits per second; 0 if unknown.
func Capable(device Hop) float64 { return bandwidth(device.MaxSpeed, device.MaxWidth) }

// Pair is both ends of a link, named after the lower one.
type Pair struct {
	Lower, Upper string
	Link         // current values, and the maximum that both ends support
}

// Pairs returns the links of a path: a root port, an upstream and a downstream port per switch, and a device, so that
// ends are adjacent. Any other path has no result.
func Pairs(path []Hop) (out []Pair) {
	if len(path)%2 != 0 {
		return nil
	}
	for i := 0; i < len(path); i += 2 {
		up, low := path[i], path[i+1]
		if low.Width == 0 || low.Speed == 0 {
			continue
		}
		out = append(out, Pair{Lower: low.Address, Upper: up.Address, Link: Link{
			Speed: low.Speed, Width: low.Width, MaxSpeed: lesser(low.MaxSpeed, up.MaxSpeed),
			MaxWidth: lesser(low.MaxWidth, up.MaxWidth),
		}})
	}
	return out
}

// lesser returns the smaller of two values, 0 if one is unknown.
func lesser[T float64 | uint64](a, b T) T { return min(a, b) }
