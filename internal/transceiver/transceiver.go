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

// electrical says whether there is no light on it: power of lanes has no meaning then, whatever the module lists.
func (m Media) electrical() bool { return m == PassiveCopper || m == ActiveCopper || m == TwistedPair }

// Module is what a module says. Nil, empty and MediaUnknown are what it does not say, or what has no meaning.
type Module struct {
	Identifier uint8  `json:"identifier"`            // SFF-8024, table 4-1
	FormFactor string `json:"form_factor,omitempty"` // by the identifier, and by the rate of its lanes where one identifier stands for several: QSFP28, OSFP
	Layout     Layout `json:"layout,omitempty"`
	Unknown    bool   `json:"unknown,omitempty"`  // the layout of the identifier is not known: of the identity what its checksum vouches for, and no readings
	Revision   string `json:"revision,omitempty"` // of CMIS: "4.0"

	Vendor         string `json:"vendor,omitempty"`
	OUI            string `json:"oui,omitempty"` // of the vendor: 00:02:c9
	PartNumber     string `json:"part_number,omitempty"`
	VendorRevision string `json:"vendor_revision,omitempty"`
	SerialNumber   string `json:"serial_number,omitempty"`
	DateCode       string `json:"date_code,omitempty"` // YYMMDD, then a lot of the vendor's
	Firmware       string `json:"firmware,omitempty"`  // the active image, CMIS: "1.2"

	Media       Media    `json:"media,omitempty"`
	Connector   string   `json:"connector,omitempty"`           // SFF-8024, table 4-3
	Compliance  string   `json:"compliance,omitempty"`          // SFF modules: the extended specification, SFF-8024, table 4-4
	CableLength *float64 `json:"cable_length_metres,omitempty"` // metres, of a cable
	Reach       *float64 `json:"reach_metres,omitempty"`        // metres, the longest link over the best fibre that is told of
	PowerClass  *uint64  `json:"power_class,omitempty"`
	MaxPower    *float64 `json:"max_power_watts,omitempty"` // watts

	FlatMemory *bool `json:"flat_memory,omitempty"` // no pages but 00h, and no monitors: passive copper as a rule
	// DOM says that the module has monitors. Their values are nil where it has none, and where they are out of range.
	DOM          bool          `json:"has_monitors,omitempty"`
	NotReady     bool          `json:"not_ready,omitempty"`           // the monitors have no values yet: the module is starting
	Temperature  *float64      `json:"temperature_celsius,omitempty"` // celsius, of the case
	Voltage      *float64      `json:"voltage_volts,omitempty"`       // volts
	RxPowerKind  PowerKind     `json:"rx_power_kind,omitempty"`
	ExternalCal  bool          `json:"external_calibration,omitempty"` // SFF-8472: the readings are made from raw ones with the module's own constants
	Thresholds   Thresholds    `json:"thresholds,omitzero"`
	Lanes        []Lane        `json:"lanes,omitempty"` // media lanes that the module has, by number
	Applications []Application `json:"applications,omitempty"`
	Garbled      []string      `json:"garbled,omitempty"`    // readings of light that mean nothing, such as all ones of a module that is ready: "rx_power of lane 3"
	HostLanes    []HostLane    `json:"host_lanes,omitempty"` // CMIS
	DataPaths    []DataPath    `json:"data_paths,omitempty"` // CMIS: those that an application has been selected for

	State    string `json:"state,omitempty"` // of a CMIS module: low_power, power_up, ready, power_down, fault
	Fault    string `json:"fault,omitempty"` // why it is in fault
	LowPower *bool  `json:"low_power,omitempty"`

	// BadChecksums names the checksums that do not fit: "00h:222". What they are of is decoded all the same, since makers of cables
	// leave them out, and a serial number with a wrong bit is better than none.
	BadChecksums []string `json:"bad_checksums,omitempty"`
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
	Number  int      `json:"number"`                 // from 1
	RxPower *float64 `json:"rx_power_dbm,omitempty"` // dBm; -40 is dark
	TxPower *float64 `json:"tx_power_dbm,omitempty"` // dBm; -40 is dark
	Bias    *float64 `json:"bias_amperes,omitempty"` // amperes
	// Active says that the data path of the lane is activated (CMIS). SFF modules do not tell: what the port does has to do.
	Active     *bool `json:"active,omitempty"`
	TxDisabled *bool `json:"tx_disabled,omitempty"` // SFF-8636 86, A2h:110
	TxFault    *bool `json:"tx_fault,omitempty"`    // A2h:110, not latched
	RxLOS      *bool `json:"rx_los,omitempty"`      // A2h:110, not latched
}

// Levels are the thresholds of one reading, in its unit.
type Levels struct {
	HighAlarm   *float64 `json:"high_alarm,omitempty"`
	LowAlarm    *float64 `json:"low_alarm,omitempty"`
	HighWarning *float64 `json:"high_warning,omitempty"`
	LowWarning  *float64 `json:"low_warning,omitempty"`
}

// Thresholds are those that the module was given by its maker. Ones that make no sense are left out.
type Thresholds struct {
	Temperature Levels `json:"temperature_celsius,omitzero"` // celsius
	Voltage     Levels `json:"voltage_volts,omitzero"`       // volts
	RxPower     Levels `json:"rx_power_dbm,omitzero"`        // dBm
	TxPower     Levels `json:"tx_power_dbm,omitzero"`        // dBm
	Bias        Levels `json:"bias_amperes,omitzero"`        // amperes
}

// Application is a use that a CMIS module may be put to (CMIS, Application Descriptors).
type Application struct {
	Number       int    `json:"number,omitempty"`   // AppSel code, from 1
	Host         string `json:"host,omitempty"`     // electrical interface: 400GAUI-4-L C2M
	Media        string `json:"media,omitempty"`    // media interface: 400GBASE-DR4
	HostID       uint8  `json:"host_id,omitempty"`  // SFF-8024, table 4-5
	MediaID      uint8  `json:"media_id,omitempty"` // SFF-8024, tables 4-6 to 4-10
	HostLanes    int    `json:"host_lanes,omitempty"`
	MediaLanes   int    `json:"media_lanes,omitempty"`
	HostOptions  uint8  `json:"host_options,omitempty"`  // bit n: it may begin at host lane n+1
	MediaOptions uint8  `json:"media_options,omitempty"` // bit n: it may begin at media lane n+1
}

// HostLane is a lane between the host and a CMIS module.
type HostLane struct {
	Number      int    `json:"number,omitempty"`      // from 1
	State       string `json:"state,omitempty"`       // of its data path: deactivated, init, deinit, activated, tx_turn_on, tx_turn_off, initialized; empty where it is none of them
	Application int    `json:"application,omitempty"` // AppSel code that is provisioned; 0 none
	path        int    // number of the data path, from 0 over all banks
}

// DataPath is an application at work on some lanes. A module with two ports has at least two.
type DataPath struct {
	Application int   `json:"application,omitempty"` // AppSel code
	HostLanes   []int `json:"host_lanes,omitempty"`  // by number
	MediaLanes  []int `json:"media_lanes,omitempty"` // by number; nil where the module does not tell which
	Activated   bool  `json:"activated"`             // on all its host lanes
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
	if m.Media.electrical() {
		m.Thresholds.RxPower, m.Thresholds.TxPower = Levels{}, Levels{}
	}
	if m.Media == PassiveCopper {
		m.Thresholds.Bias = Levels{}
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
