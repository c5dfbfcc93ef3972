package mad

import "math/bits"

// Widths is a set of link widths (IBA 14.2.5.6, LinkWidthSupported).
type Widths uint8

// widthLanes are the lanes of each bit.
var widthLanes = [...]int{1, 4, 8, 12, 2}

// Lanes is the number of lanes of the widest; 0 of none.
func (w Widths) Lanes() (most int) {
	for bit, lanes := range widthLanes {
		if w&(1<<bit) != 0 {
			most = max(most, lanes)
		}
	}
	return most
}

// Speeds is a set of link speeds, SDR being the lowest bit, in the order of speedNames. PortInfo has them in three places.
type Speeds uint8

const (
	baseSpeeds     = 0b111   // SDR, DDR, QDR: LinkSpeed*
	extendedShift  = 3       // FDR, EDR, HDR, NDR: LinkSpeedExt*
	extended2Shift = 7       // XDR: LinkSpeedExt*2
	noExtended     = 0b11110 // LinkSpeedExtEnabled: none
	extendedSpeeds = 0b1111  // bits of LinkSpeedExt*
)

// speeds are the names, and the rates that the kernel gives each lane, in Gb/s (drivers/infiniband/core/sysfs.c, rate_show).
var speeds = [...]struct {
	name string
	rate float64
}{{"SDR", 2.5}, {"DDR", 5}, {"QDR", 10}, {"FDR", 14}, {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}}

func (s Speeds) fastest() int { return bits.Len8(uint8(s)) - 1 }

// LaneRate is the rate of a lane at the fastest of them in Gb/s, as the kernel counts it; 0 of none. FDR10, a speed of its vendor, is not
// in PortInfo: such a link shows as QDR, which has the same rate.
func (s Speeds) LaneRate() float64 {
	if s == 0 {
		return 0
	}
	return speeds[s.fastest()].rate
}

// Name is that of the fastest: SDR … XDR; empty of none.
func (s Speeds) Name() string {
	if s == 0 {
		return ""
	}
	return speeds[s.fastest()].name
}

// Link is what a port can, may or does.
type Link struct {
	Widths Widths
	Speeds Speeds
}

// And is what both ends of a link have.
func (l Link) And(other Link) Link { return Link{l.Widths & other.Widths, l.Speeds & other.Speeds} }

// Rate is the highest data rate in bytes per second; 0 if there is none.
func (l Link) Rate() float64 { return float64(l.Widths.Lanes()) * l.Speeds.LaneRate() * 1e9 / 8 }
