package transceivers

import (
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

const eepromSource = "ethtool netlink MODULE_EEPROM_GET: "

var (
	transceiverInfo  = metric.Of(`rdma_transceiver_state{state="present"}`, metric.Optics("rdma_transceiver_info", "Transceiver or cable in the cage of a port, always 1. media: passive_copper, active_copper, active_optical (cable with transceivers at both ends), multi_mode, single_mode, twisted_pair; empty where not reported.", eepromSource+"identity (SFF-8472, SFF-8636, CMIS)", "form_factor", "vendor", "part_number", "serial_number", "media"))
	transceiverState = metric.Optics("rdma_transceiver_state", "State of a port's cage and of the transceiver in it, 1 for each state that applies. present: the transceiver responds. absent: the driver reports an empty cage. busy: firmware is being written. unreadable: the cage is occupied and reading fails. no_answer: reading fails and the driver does not report whether the cage is occupied, as while the interface is administratively down. unknown_layout: the memory map is not supported. In addition to present: low_power, power_up, ready, power_down, fault (CMIS), or low_power, not_ready (SFF, no readings yet). Absent where the driver does not read transceivers.", eepromSource+"CMIS 00h:3, SFF-8636 00h:2 and 93; LINKSTATE_GET, ext_state", "state")
	// transceiverDuplicate lets rules select one of the ports that report a transceiver: PromQL cannot select by name.
	transceiverDuplicate = besideInfo(metric.Optics("rdma_transceiver_duplicate_info", "Port that reports the transceiver of another port (same vendor, part and serial number), always 1: a transceiver with two ports, or a port with two functions. first: netdev of the port that carries the alerts. Absent for that port, and for transceivers reported once.", "as rdma_transceiver_info", "first"))
	transceiverAge       = besideInfo(metric.Optics("rdma_transceiver_age_seconds", "Age of the readings of the transceiver, taken every --transceiver.interval and never by a scrape. Readings older than three intervals are not served. Absent for transceivers without readings.", "the exporter"))

	transceiverTemperature = metric.OfReadings(metric.Optics("rdma_transceiver_temperature_celsius", "Case temperature of the transceiver.", eepromSource+"A2h:96, 00h:22, 00h:14"))
	transceiverVoltage     = metric.OfReadings(metric.Optics("rdma_transceiver_voltage_volts", "Supply voltage of the transceiver.", eepromSource+"A2h:98, 00h:26, 00h:16"))
	transceiverReceive     = ofLanes(metric.Optics("rdma_transceiver_receive_power_dbm", "Optical power received by a lane, -40 for no light. Absent for copper (no valid reading), and on InfiniBand ports (no transceiver data from the kernel).", eepromSource+"A2h:104, 00h:34, 11h:186", "lane"))
	transceiverTransmit    = ofLanes(metric.Optics("rdma_transceiver_transmit_power_dbm", "Optical power transmitted by a lane, -40 for no light.", eepromSource+"A2h:102, 00h:50, 11h:154", "lane"))
	transceiverBias        = ofLanes(metric.Optics("rdma_transceiver_bias_amperes", "Laser bias current of a lane.", eepromSource+"A2h:100, 00h:42, 11h:170", "lane"))
	transceiverLaneActive  = metric.BesideAge(metric.Optics("rdma_transceiver_lane_active", "Whether a media lane belongs to an activated data path. A CMIS transceiver reports all its lanes, including those of other ports. Absent for SFF transceivers, whose lanes are in use while the port is ACTIVE.", eepromSource+"11h:128 and 206", "lane"))

	temperatureThreshold = thresholdDesc("rdma_transceiver_age_seconds", "rdma_transceiver_temperature_threshold_celsius")
	voltageThreshold     = thresholdDesc("rdma_transceiver_age_seconds", "rdma_transceiver_voltage_threshold_volts")
	receiveThreshold     = thresholdDesc(transceiverReceive.Name, "rdma_transceiver_receive_power_threshold_dbm")
	transmitThreshold    = thresholdDesc(transceiverTransmit.Name, "rdma_transceiver_transmit_power_threshold_dbm")
	biasThreshold        = thresholdDesc(transceiverBias.Name, "rdma_transceiver_bias_threshold_amperes")

	transceiverDescs = []*metric.Desc{
		transceiverState, transceiverInfo, transceiverDuplicate, transceiverAge, transceiverLaneActive,
		transceiverTemperature, transceiverVoltage, transceiverReceive, transceiverTransmit, transceiverBias,
		temperatureThreshold, voltageThreshold, receiveThreshold, transmitThreshold, biasThreshold,
	}
)

func thresholdDesc(reading, name string) *metric.Desc {
	return metric.Of(reading, metric.Optics(name, "Vendor threshold of the reading of the same name, for all lanes. level: high_alarm, low_alarm, high_warning, low_warning. Absent where the value is invalid.",
		eepromSource+"A2h:0-39, 03h, 02h", "level"))
}

// besideInfo is for metrics of some transceivers only: passive cables have no readings.
func besideInfo(d *metric.Desc) *metric.Desc {
	return metric.Of(`rdma_transceiver_state{state="present"}`, metric.Beside("rdma_transceiver_info", d))
}

// ofLanes is for readings of the lanes of such transceivers. Passive copper has none, whatever else it reports.
func ofLanes(d *metric.Desc) *metric.Desc {
	return metric.OfReadings(metric.Beside(`rdma_transceiver_info{media="passive_copper"}`, d))
}

func emitTransceivers(optics *wire.Optics, s metric.Sink) {
	for i := range optics.Cages {
		emitCage(s, &optics.Cages[i])
	}
}

func emitCage(s metric.Sink, c *wire.Cage) {
	at := [...]string{c.Device, strconv.Itoa(c.Port), c.Netdev}
	for _, state := range c.States() {
		s.Emit(transceiverState, 1, append(at[:], state)...)
	}
	m := c.Module
	if m == nil {
		return
	}
	s.Emit(transceiverInfo, 1, append(at[:], m.FormFactor, m.Vendor, m.PartNumber, m.SerialNumber, string(m.Media))...)
	if c.First != "" {
		s.Emit(transceiverDuplicate, 1, append(at[:], c.First)...)
	}
	if c.Age != nil {
		s.Emit(transceiverAge, c.Age.Seconds(), at[:]...)
	}
	metric.EmitNumber(s, transceiverTemperature, m.Temperature, at[:]...)
	metric.EmitNumber(s, transceiverVoltage, m.Voltage, at[:]...)
	for j := range m.Lanes {
		lane := &m.Lanes[j]
		l := append(at[:], strconv.Itoa(lane.Number))
		metric.EmitNumber(s, transceiverReceive, lane.RxPower, l...)
		metric.EmitNumber(s, transceiverTransmit, lane.TxPower, l...)
		metric.EmitNumber(s, transceiverBias, lane.Bias, l...)
		metric.EmitBool(s, transceiverLaneActive, lane.Active, l...)
	}
	t := &m.Thresholds
	emitLevels(s, temperatureThreshold, &t.Temperature, at[:])
	emitLevels(s, voltageThreshold, &t.Voltage, at[:])
	emitLevels(s, receiveThreshold, &t.RxPower, at[:])
	emitLevels(s, transmitThreshold, &t.TxPower, at[:])
	emitLevels(s, biasThreshold, &t.Bias, at[:])
}

func emitLevels(s metric.Sink, d *metric.Desc, l *transceiver.Levels, at []string) {
	metric.EmitNumber(s, d, l.HighAlarm, append(at, "high_alarm")...)
	metric.EmitNumber(s, d, l.LowAlarm, append(at, "low_alarm")...)
	metric.EmitNumber(s, d, l.HighWarning, append(at, "high_warning")...)
	metric.EmitNumber(s, d, l.LowWarning, append(at, "low_warning")...)
}
