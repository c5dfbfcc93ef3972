// Package transceiver reads what a pluggable module or cable says of itself in its EEPROM: SFF-8472 (SFP), SFF-8636 (QSFP) and
// CMIS (QSFP-DD, OSFP, QSFP112). It is pure: Plan says which bytes to read, whoever can read them puts them into Pages, and Decode
// gives them their meaning.
//
// Bytes are named as the standards do: 00h:129 is byte 129 of page 00h, A2h:96 byte 96 of the second I2C address. Latched flags
// (SFF-8636 3–21, CMIS 8–13 and 11h:134–153) are cleared by reading, so that another reader would lose them: Plan never names them.
// Readings against the module's own thresholds say the same.
package transceiver

// Layout is the standard that a module's memory follows.
type Layout string

// The layouts. A module of none of them shows its identity at most.
const (
	LayoutUnknown Layout = ""
	SFF8472       Layout = "SFF-8472"
	SFF8636       Layout = "SFF-8636"
	CMIS          Layout = "CMIS"
)

// Media is what carries the signal.
type Media string

// The media.
const (
	MediaUnknown  Media = ""
	PassiveCopper Media = "passive_copper"
	ActiveCopper  Media = "active_copper"
	ActiveOptical Media = "active_optical" // a cable that ends in modules
	MultiMode     Media = "multi_mode"
	SingleMode    Media = "single_mode"
	TwistedPair   Media = "twisted_pair"
)

// Module is what a module says. Nil, empty and MediaUnknown are what it does not say, or what has no meaning.
type Module struct {
	Identifier uint8  // SFF-8024, table 4-1
	FormFactor string // by the identifier, and by the rate of its lanes where one identifier stands for several: QSFP28, OSFP
	Layout     Layout
	Unknown    bool   // the layout of the identifier is not known: of the identity what its checksum vouches for, and no readings
	Revision   string // of CMIS: "4.0"

	Vendor         string
	OUI            string // of the vendor: 00:02:c9
	PartNumber     string
	VendorRevision string
	SerialNumber   string
	DateCode       string // YYMMDD, then a lot of the vendor's
	Firmware       string // the active image, CMIS: "1.2"

	Media       Media
	Connector   string   // SFF-8024, table 4-3
	Compliance  string   // SFF modules: the extended specification, SFF-8024, table 4-4
	CableLength *float64 // metres, of a cable
	Reach       *float64 // metres, the longest link over the best fibre that is told of
	PowerClass  *uint64
	MaxPower    *float64 // watts

	FlatMemory *bool // no pages but 00h, and no monitors: passive copper as a rule
	// DOM says that the module has monitors. Their values are nil where it has none, and where they are out of range.
	DOM          bool
	NotReady     bool     // the monitors have no values yet: the module is starting
	Temperature  *float64 // celsius, of the case
	Voltage      *float64 // volts
	RxPowerKind  PowerKind
	ExternalCal  bool // SFF-8472: the readings are made from raw ones with the module's own constants
	Thresholds   Thresholds
	Lanes        []Lane // media lanes that the module has, by number
	Applications []Application
	HostLanes    []HostLane // CMIS
	DataPaths    []DataPath // CMIS: those that an application has been selected for

	State    string // of a CMIS module: low_power, power_up, ready, power_down, fault
	Fault    string // why it is in fault
	LowPower *bool

	// BadChecksums names the checksums that do not fit: "00h:222". What they are of is decoded all the same, since makers of cables
	// leave them out, and a serial number with a wrong bit is better than none.
	BadChecksums []string
}

// PowerKind says what the received power is.
type PowerKind string

// The kinds of received power.
const (
	AveragePower PowerKind = "average"
	OMA          PowerKind = "oma" // optical modulation amplitude
)

// Lane is a media lane: an optical one, or one of a cable.
type Lane struct {
	Number  int      // from 1
	RxPower *float64 // dBm; -40 is dark
	TxPower *float64 // dBm; -40 is dark
	Bias    *float64 // amperes
	// Active says that the data path of the lane is activated (CMIS). SFF modules do not tell: what the port does has to do.
	Active     *bool
	TxDisabled *bool // SFF-8636 86, A2h:110
	TxFault    *bool // A2h:110, not latched
	RxLOS      *bool // A2h:110, not latched
}

// Levels are the thresholds of one reading, in its unit.
type Levels struct {
	HighAlarm, LowAlarm, HighWarning, LowWarning *float64
}

// Thresholds are those that the module was given by its maker. Ones that make no sense are left out.
type Thresholds struct {
	Temperature Levels // celsius
	Voltage     Levels // volts
	RxPower     Levels // dBm
	TxPower     Levels // dBm
	Bias        Levels // amperes
}

// Application is a use that a CMIS module may be put to (CMIS, Application Descriptors).
type Application struct {
	Number       int    // AppSel code, from 1
	Host         string // electrical interface: 400GAUI-4-L C2M
	Media        string // media interface: 400GBASE-DR4
	HostID       uint8  // SFF-8024, table 4-5
	MediaID      uint8  // SFF-8024, tables 4-6 to 4-10
	HostLanes    int
	MediaLanes   int
	HostOptions  uint8 // bit n: it may begin at host lane n+1
	MediaOptions uint8 // bit n: it may begin at media lane n+1
}

// HostLane is a lane between the host and a CMIS module.
type HostLane struct {
	Number      int    // from 1
	State       string // of its data path: deactivated, init, deinit, activated, tx_turn_on, tx_turn_off, initialized; empty where it is none of them
	Application int    // AppSel code that is provisioned; 0 none
	path        int    // number of the data path, from 0 over all banks
}

// DataPath is an application at work on some lanes. A module with two ports has at least two.
type DataPath struct {
	Application int   // AppSel code
	HostLanes   []int // by number
	MediaLanes  []int // by number; nil where the module does not tell which
	Activated   bool  // on all its host lanes
	path        int   // its number, from 0 over all banks
}

// Decode gives meaning to what has been read. It takes any bytes.
func Decode(p *Pages) Module {
	m := Module{}
	id, ok := p.byteAt(lower(0))
	if !ok {
		m.Unknown = true
		return m
	}
	m.Identifier, m.Layout = id, layoutOf(id)
	m.FormFactor = formFactors[id]
	switch m.Layout {
	case SFF8472:
		decodeSFF8472(p, &m)
	case SFF8636:
		decodeSFF8636(p, &m)
	case CMIS:
		decodeCMIS(p, &m)
	default:
		decodeUnknown(p, &m)
	}
	if m.FormFactor == "" {
		m.FormFactor = "unknown"
	}
	return m
}

// decodeUnknown takes the identity in the layout whose checksum fits. Byte 128 repeats the identifier in both.
func decodeUnknown(p *Pages, m *Module) {
	m.Unknown = true
	again, ok := p.byteAt(upper(0, 0, 128))
	switch {
	case !ok || again != m.Identifier:
	case p.sumFits(cmisSums[0]):
		cmisIdentity(p, m)
	case p.sumFits(sff8636Sums[0]) && p.sumFits(sff8636Sums[1]):
		sff8636Identity(p, m)
	}
}
