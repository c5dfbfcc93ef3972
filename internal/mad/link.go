package mad

// Widths is a set of link widths (IBA 14.2.5.6, LinkWidthSupported).
type Widths uint8

// widthLanes are the lanes of each bit of Widths.
var widthLanes = [...]int{1, 4, 8, 12, 2}

// Lanes returns the number of lanes of the widest width; 0 if there is none.
func (w Widths) Lanes() (most int) {
	for bit, lanes := range widthLanes {
		if w&(1<<bit) != 0 {
			most = max(most, lanes)
		}
	}
	return most
}

// Speeds is a set of link speeds, with SDR as the lowest bit. PortInfo has all but FDR10, in three fields.
type Speeds uint16

const (
	baseSpeeds     = 0b111   // SDR, DDR, QDR: LinkSpeed*
	extendedShift  = 3       // FDR, EDR, HDR, NDR: LinkSpeedExt*
	extended2Shift = 7       // XDR: LinkSpeedExt*2
	noExtended     = 0b11110 // LinkSpeedExtEnabled: none
	extendedSpeeds = 0b1111  // bits of LinkSpeedExt*
)

// Speeds that are used by name.
const (
	QDR   Speeds = 1 << 2
	FDR10 Speeds = 1 << 8 // Mellanox: 10.3125 Gb/s with the encoding of FDR
)

type speed struct {
	bit  Speeds
	name string
	rate float64
}

// speeds are the names and the rate of a lane in Gb/s as the kernel reports it (drivers/infiniband/core/sysfs.c,
// rate_show), fastest first. The kernel reports FDR10 with the rate of QDR, although the encoding of QDR leaves a fifth
// less for data.
var speeds = [...]speed{
	{1 << 7, "XDR", 200},
	{1 << 6, "NDR", 100},
	{1 << 5, "HDR", 50},
	{1 << 4, "EDR", 25},
	{1 << 3, "FDR", 14},
	{FDR10, "FDR10", 10},
	{QDR, "QDR", 10},
	{1 << 1, "DDR", 5},
	{1 << 0, "SDR", 2.5},
}

// fastest returns the fastest speed; zero if there is none.
func (s Speeds) fastest() (x speed) {
	for _, x = range speeds {
		if s&x.bit != 0 {
			return x
		}
	}
	return speed{}
}

// LaneRate returns the rate of a lane at the fastest speed in Gb/s, as the kernel reports it; 0 if there is none.
func (s Speeds) LaneRate() float64 { return s.fastest().rate }

// Name returns the name of the fastest speed: SDR … XDR; empty if there is none.
func (s Speeds) Name() string { return s.fastest().name }

// Link is the widths and speeds that a port supports, has enabled or runs at.
type Link struct {
	Widths Widths
	Speeds Speeds
}

// And returns the widths and speeds that both ends of a link have.
func (l Link) And(other Link) Link { return Link{l.Widths & other.Widths, l.Speeds & other.Speeds} }

// Rate returns the highest data rate in bytes per second; 0 if there is none.
func (l Link) Rate() float64 { return float64(l.Widths.Lanes()) * l.Speeds.LaneRate() * 1e9 / 8 }
