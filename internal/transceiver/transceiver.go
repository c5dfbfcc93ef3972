// Package transceiver decodes the EEPROM of pluggable modules and cables: SFF-8472 (SFP), SFF-8636 (QSFP) and CMIS
// (QSFP-DD, OSFP, QSFP112). It is pure: Plan returns the bytes to read, the caller stores them in Pages, and Decode
// decodes them.
//
// Bytes are named as in the standards: 00h:129 is byte 129 of page 00h, A2h:96 byte 96 of the second I2C address.
// Latched flags (SFF-8636 3–21, CMIS 8–13 and 11h:134–153) are cleared by reading, and would be lost for other readers:
// Plan never includes them. Comparing readings with the module's thresholds gives the same information.
package transceiver

// Layout is the standard of a module's memory.
type Layout string

// The layouts. Of a module with another layout, at most the identity is decoded.
const (
	LayoutUnknown Layout = ""
	SFF8472       Layout = "SFF-8472"
	SFF8636       Layout = "SFF-8636"
	CMIS          Layout = "CMIS"
)

// standards are what to read of a layout, how to decode it, and where it has identifying data.
var standards = map[Layout]struct {
	plan    func(*Pages) (static, monitors []Ref)
	decode  func(*Pages, *Module)
	private Place
}{
	SFF8472: {planSFF8472, decodeSFF8472, Place{lower(68).run(16), lower(95), lower(96).run(32)}},
	SFF8636: {planSFF8636, decodeSFF8636, Place{upper(0, 0, 196).run(16), upper(0, 0, 223), upper(0, 0, 224).run(32)}},
	CMIS:    {planCMIS, decodeCMIS, Place{upper(0, 0, 166).run(16), upper(0, 0, 222), upper(0, 0, 223).run(33)}},
}

// Place is where a module has data that identifies it.
type Place struct {
	Serial   Ref // serial number
	Checksum Ref // checksum that includes the serial number
	Vendor   Ref // vendor-specific: may contain the serial number or customer names
}

// Private returns where modules with an identifier have identifying data; ok is false for an unknown identifier.
func Private(identifier uint8) (p Place, ok bool) {
	s, ok := standards[layoutOf(identifier)]
	return s.private, ok
}

// Media is the transmission medium.
type Media string

const (
	MediaUnknown  Media = ""
	PassiveCopper Media = "passive_copper"
	ActiveCopper  Media = "active_copper"
	ActiveOptical Media = "active_optical" // a cable with fixed modules at its ends
	MultiMode     Media = "multi_mode"
	SingleMode    Media = "single_mode"
	TwistedPair   Media = "twisted_pair"
)

// electrical reports whether the medium is not optical: power readings of its lanes are meaningless.
func (m Media) electrical() bool { return m == PassiveCopper || m == ActiveCopper || m == TwistedPair }

// Module is the decoded EEPROM. Nil, empty and MediaUnknown: not reported, or invalid.
type Module struct {
	Identifier uint8 `json:"identifier"` // SFF-8024, table 4-1
	// By identifier, and by lane rate if the identifier is ambiguous: QSFP28, OSFP.
	FormFactor string `json:"form_factor,omitempty"`
	Layout     Layout `json:"layout,omitempty"`
	// unknown layout: the part of the identity with a valid checksum, and no readings.
	Unknown  bool   `json:"unknown,omitempty"`
	Revision string `json:"revision,omitempty"` // of CMIS: "4.0"

	Vendor         string `json:"vendor,omitempty"`
	OUI            string `json:"oui,omitempty"` // of the vendor: 00:02:c9
	PartNumber     string `json:"part_number,omitempty"`
	VendorRevision string `json:"vendor_revision,omitempty"`
	SerialNumber   string `json:"serial_number,omitempty"`
	DateCode       string `json:"date_code,omitempty"` // YYMMDD, then a lot code of the vendor
	Firmware       string `json:"firmware,omitempty"`  // the active image, CMIS: "1.2"

	Media     Media  `json:"media,omitempty"`
	Connector string `json:"connector,omitempty"` // SFF-8024, table 4-3
	// SFF modules: the extended specification, SFF-8024, table 4-4.
	Compliance  string   `json:"compliance,omitempty"`
	CableLength *float64 `json:"cable_length_metres,omitempty"` // metres, of a cable
	Reach       *float64 `json:"reach_metres,omitempty"`        // metres, the longest link over the best fibre type
	PowerClass  *uint64  `json:"power_class,omitempty"`
	MaxPower    *float64 `json:"max_power_watts,omitempty"` // watts

	FlatMemory *bool `json:"flat_memory,omitempty"` // no pages but 00h, and no monitors: usually passive copper
	// DOM: the module has monitors. Values are nil without monitors, and out of range.
	DOM         bool      `json:"has_monitors,omitempty"`
	NotReady    bool      `json:"not_ready,omitempty"`           // no readings yet: the module is starting
	Temperature *float64  `json:"temperature_celsius,omitempty"` // celsius, of the case
	Voltage     *float64  `json:"voltage_volts,omitempty"`       // volts
	RxPowerKind PowerKind `json:"rx_power_kind,omitempty"`
	// SFF-8472: readings are converted with constants of the module.
	ExternalCal  bool          `json:"external_calibration,omitempty"`
	Thresholds   Thresholds    `json:"thresholds,omitzero"`
	Lanes        []Lane        `json:"lanes,omitempty"` // implemented media lanes, by number
	Applications []Application `json:"applications,omitempty"`
	// Invalid optical readings, such as all ones from a module that is ready: "rx_power of lane 3".
	Garbled   []string   `json:"garbled,omitempty"`
	HostLanes []HostLane `json:"host_lanes,omitempty"` // CMIS
	DataPaths []DataPath `json:"data_paths,omitempty"` // CMIS: those with a selected application

	State    string `json:"state,omitempty"` // of a CMIS module: low_power, power_up, ready, power_down, fault
	Fault    string `json:"fault,omitempty"` // cause of the fault
	LowPower *bool  `json:"low_power,omitempty"`

	// BadChecksums are the checksums that do not match: "00h:222". The data is decoded nevertheless: some cable vendors
	// omit checksums, and a serial number with a wrong bit is better than none.
	BadChecksums []string `json:"bad_checksums,omitempty"`
}

// PowerKind is the kind of the received power.
type PowerKind string

const (
	AveragePower PowerKind = "average"
	OMA          PowerKind = "oma" // optical modulation amplitude
)

// Lane is a media lane: optical, or of a cable.
type Lane struct {
	Number  int      `json:"number"`                 // from 1
	RxPower *float64 `json:"rx_power_dbm,omitempty"` // dBm; -40: no optical power
	TxPower *float64 `json:"tx_power_dbm,omitempty"` // dBm; -40: no optical power
	Bias    *float64 `json:"bias_amperes,omitempty"` // amperes
	// Active: the data path of the lane is activated (CMIS). For SFF modules it is unknown; use the state of the port.
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

// Thresholds are set by the vendor of the module. Invalid ones are left out.
type Thresholds struct {
	Temperature Levels `json:"temperature_celsius,omitzero"` // celsius
	Voltage     Levels `json:"voltage_volts,omitzero"`       // volts
	RxPower     Levels `json:"rx_power_dbm,omitzero"`        // dBm
	TxPower     Levels `json:"tx_power_dbm,omitzero"`        // dBm
	Bias        Levels `json:"bias_amperes,omitzero"`        // amperes
}

// Application is an application advertised by a CMIS module (CMIS, Application Descriptors).
type Application struct {
	Number       int    `json:"number,omitempty"`   // AppSel code, from 1
	Host         string `json:"host,omitempty"`     // electrical interface: 400GAUI-4-L C2M
	Media        string `json:"media,omitempty"`    // media interface: 400GBASE-DR4
	HostID       uint8  `json:"host_id,omitempty"`  // SFF-8024, table 4-5
	MediaID      uint8  `json:"media_id,omitempty"` // SFF-8024, tables 4-6 to 4-10
	HostLanes    int    `json:"host_lanes,omitempty"`
	MediaLanes   int    `json:"media_lanes,omitempty"`
	HostOptions  uint8  `json:"host_options,omitempty"`  // bit n: may begin at host lane n+1
	MediaOptions uint8  `json:"media_options,omitempty"` // bit n: may begin at media lane n+1
}

// HostLane is a lane between the host and a CMIS module.
type HostLane struct {
	Number int `json:"number,omitempty"` // from 1
	// Of its data path: deactivated, init, deinit, activated, tx_turn_on, tx_turn_off, initialized; empty: none of these.
	State       string `json:"state,omitempty"`
	Application int    `json:"application,omitempty"` // provisioned AppSel code; 0: none
	path        int    // number of the data path, from 0 over all banks
}

// DataPath is an application in use on some lanes. A module with two ports has at least two.
type DataPath struct {
	Application int   `json:"application,omitempty"` // AppSel code
	HostLanes   []int `json:"host_lanes,omitempty"`  // by number
	MediaLanes  []int `json:"media_lanes,omitempty"` // by number; nil: unknown
	Activated   bool  `json:"activated"`             // on all its host lanes
	path        int   // its number, from 0 over all banks
}

// Decode decodes what has been read. It accepts any bytes.
func Decode(p *Pages) Module {
	m := Module{}
	id, ok := p.byteAt(lower(0))
	if !ok {
		m.Unknown = true
		return m
	}
	m.Identifier, m.Layout = id, layoutOf(id)
	m.FormFactor = formFactors[id]
	decode := decodeUnknown
	if s, known := standards[m.Layout]; known {
		decode = s.decode
	}
	decode(p, &m)
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

// decodeUnknown decodes the identity in the layout whose checksum matches. Byte 128 repeats the identifier in both.
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
