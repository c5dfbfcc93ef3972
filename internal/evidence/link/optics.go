package link

import (
	"cmp"
	"fmt"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// opticsFaults are those of transceivers.
var opticsFaults = fault.Kinds{
	"transceiver_out_of_range/cold": {
		Write: transceiverCold,
		Measure: `port:rdma_transceiver_cold:warning{$port} ` +
			`or port:rdma_transceiver_cold:info{$port}`,
	},
	"transceiver_out_of_range/voltage": {
		Write: transceiverVoltage,
		Measure: `port:rdma_transceiver_voltage:alarm{$port} ` +
			`or port:rdma_transceiver_voltage:warning{$port}`,
	},
	"transceiver_fault/fault": {Write: transceiverFault, Measure: `port:rdma_transceiver_state:fault{$port}`},
	"transceiver_fault/unreadable": {
		Write:   transceiverUnreadable,
		Measure: `port:rdma_transceiver_state:unreadable{$port}`,
	},
	"transceiver_hot/errors": {
		Write: transceiverHot,
		Measure: `port:rdma_transceiver_temperature:errors{$port} ` +
			`or port:rdma_transceiver_temperature:alarm{$port}`,
	},
	"transceiver_hot/alarm":         {Write: transceiverHot, Measure: `port:rdma_transceiver_hot:warning{$port}`},
	"transceiver_hot/warning_limit": {Write: transceiverHot, Measure: `port:rdma_transceiver_hot:info{$port}`},
	"transceiver_hot/no_limit": {
		Write:   transceiverHot,
		Measure: `port:rdma_transceiver_temperature:celsius{$port} > {transceiver-hot-celsius}`,
	},
}

// Formats of readings.
const (
	celsius      = "%.1f °C"
	volts        = "%.3f V"
	dbm          = "%.1f dBm"
	milliamperes = "%.1f mA"
)

// temperatureNow is that of the transceiver.
const temperatureNow = `max(rdma_transceiver_temperature_celsius{$netdev})`

// temperatureTexts is what the texts of a hot and of a cold transceiver differ in.
type temperatureTexts struct {
	side           string // of the limits
	beyondAlarm    string
	beyondWarning  string // empty: no alert at this limit
	standard       string // limit of a transceiver that reports none
	beyondStandard string
	rated          string // what such a transceiver may be rated for
	extreme        string
	extremeOf30m   string // its expression
	sensors        string // of the BMC
	action         string
}

var hot = temperatureTexts{
	side:           "high",
	beyondAlarm:    "at or above its alarm limit",
	beyondWarning:  "at or above its warning limit",
	standard:       "{transceiver-hot-celsius} °C",
	beyondStandard: "above",
	rated:          "more",
	extreme:        "Maximum",
	extremeOf30m:   `max(max_over_time(rdma_transceiver_temperature_celsius{$netdev}[30m]))`,
	sensors:        "Fan",
	action: "Check the fans, the blanks and the cables in front of this cage. If they are in order, drain the host " +
		"and swap the transceiver with a cool one: if the heat stays with the cage, repair the cage or the NIC. If it " +
		"goes with the transceiver, replace the transceiver.",
}

var cold = temperatureTexts{
	side:           "low",
	beyondAlarm:    "below its low alarm limit",
	standard:       "0 °C",
	beyondStandard: "below",
	rated:          "less",
	extreme:        "Minimum",
	extremeOf30m:   `min(min_over_time(rdma_transceiver_temperature_celsius{$netdev}[30m]))`,
	sensors:        "Temperature",
	action: "Compare the temperature with the other transceivers and the inlet air. If all are cold, warm the air " +
		"and let the host warm up before it takes load. If only this one is cold, drain the host and swap it with a " +
		"transceiver of another cage and replace what stays cold, cage or transceiver.",
}

func transceiverHot(f *fault.Fault) fault.Text {
	t := temperature(f, &hot)
	switch f.Labels["severity"] {
	case "critical":
		t.Summary += ", link has errors"
		t.Description += ", and a link over it has errors"
		t.DrainReason = "The link over this transceiver has errors, and many transceivers disable their lasers " +
			"at the alarm."
	case "warning":
		t.Description += ". Its links have no errors yet"
		t.DrainReason = "The link has no errors; cordon the host if the temperature keeps rising."
	default:
		t.DrainReason = "The link works, and the transceiver has not reached its alarm."
	}
	t.Description += ". Heat ages lasers, lowers their power and shifts their wavelength: errors, then loss of the " +
		"link. Many transceivers disable their lasers at the alarm."
	return t
}

func transceiverCold(f *fault.Fault) fault.Text {
	t := temperature(f, &cold)
	t.Description += ". A cold laser shifts its wavelength and a cold receiver adapts slowly: errors, then links " +
		"that do not come up. Moisture can condense when warm air reaches the transceiver."
	t.DrainReason = "The link is up; errors of a cold transceiver have alerts of their own."
	return t
}

// temperature returns the texts of a transceiver that is too hot or too cold, with the beginning of the description.
// Severity info is that of transceivers without limits.
func temperature(f *fault.Fault, x *temperatureTexts) fault.Text {
	now := fmt.Sprintf(celsius, f.Value)
	sensor := f.Labels["netdev"] == "" // of the adapter: the module of an InfiniBand port
	reported := limits{f.Rows(`max by (level)
		(rdma_transceiver_temperature_threshold_celsius{$netdev,level=~"`+x.side+`.*"})`, "level"), celsius}
	if sensor {
		reported.rows = f.Rows(
			`label_replace(port:rdma_transceiver_temperature:limit{$netdev}, "level", "high_alarm", "", "")`)
	}
	var e fault.Lines
	e.Add("Temperature", now+".")
	e.Add("Transceiver limits", cmp.Or(reported.sentence(), "none reported."))
	if sensor {
		e.Add("Source", "sensor of the adapter (hwmon): the kernel reads no transceivers of InfiniBand ports.")
	}
	e.Add(x.extreme, f.Text(x.extremeOf30m, celsius+" in the last 30m.", ""))
	e.Add("Other transceivers", otherTransceivers(f, "rdma_transceiver_temperature_celsius", celsius))
	e.Add("Not evaluated", "the transceiver at the far end.")
	read := "ethtool -m " + fault.Pasted(f.Labels["netdev"])
	if sensor {
		read = "mlxlink -m -d " + fault.Pasted(f.Labels["device"])
	}
	t := fault.Text{
		Summary:     f.AtNetdev() + ": transceiver at " + now,
		Description: "The transceiver is at " + now,
		Evidence:    e,
		Diagnose: read + " ; rdma_exporter optics ; ipmitool sdr type " +
			x.sensors + " # as root",
		Action: x.action,
	}
	level, beyond := "alarm", x.beyondAlarm
	if f.Labels["reason"] == "warning_limit" {
		level, beyond = "warning", x.beyondWarning
	}
	limit := reported.at(x.side + "_" + level)
	if f.Labels["severity"] == "info" && level == "alarm" {
		t.Summary += " (limit " + x.standard + ", transceiver reports none)"
		t.Description += ", " + x.beyondStandard + " " + x.standard + ", the default for a transceiver that reports no " +
			"limits; it may be rated for " + x.rated
		t.Measured, t.Limit = now, x.standard
	} else if limit != "" {
		t.Summary += " (" + level + " limit " + limit + ")"
		t.Description += ", " + beyond + " of " + limit
		t.Measured, t.Limit = now, limit
	}
	return t
}

func transceiverFault(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("State", "ModuleFault (CMIS).")
	if now := f.Text(temperatureNow, celsius, ""); now != "" {
		e.Add("Temperature", now+f.Text(
			`max(rdma_transceiver_temperature_threshold_celsius{$netdev,level="high_alarm"})`,
			" (alarm limit "+celsius+")", "")+".")
	}
	reasons := f.Rows(`max by (reason, detail) (rdma_port_link_down_reason_info{$netdev})`, "reason", "detail")
	for _, r := range reasons {
		e.Add("Driver", words.Join(", ", r.Labels["reason"], r.Labels["detail"])+".")
	}
	e.Add("Not evaluated", "the fault cause inside the transceiver.")
	netdev := fault.Pasted(f.Labels["netdev"])
	return fault.Text{
		Summary: f.AtNetdev() + ": transceiver reports ModuleFault (CMIS), its links are down",
		Description: "The transceiver reports the CMIS state ModuleFault and stays in it until it is reset. All links " +
			"over it are down: each has the alert RDMAPortDown, and this fault is the cause.",
		Evidence: e,
		Diagnose: "ethtool -m " + netdev + " ; ethtool " + netdev + " # as root",
		Action: "Unplug the transceiver and plug it in again, which resets it. If the fault returns, replace the " +
			"transceiver and record its serial number and firmware for the vendor.",
		DrainReason: "The links over this transceiver are down, jobs that use them have failed or hang.",
	}
}

func transceiverUnreadable(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("State", "unreadable, link up.")
	if age, ok := f.Number(`max(rdma_transceiver_age_seconds{$netdev})`); ok {
		e.Add("Last reading", fault.Lasting(age)+" ago.")
	}
	if n, ok := f.Number(`count(max by (netdev) (rdma_transceiver_state{$host,state="present"}))`); ok {
		verb := "are"
		if n == 1 {
			verb = "is"
		}
		e.Add("Other transceivers", fault.Plain(n)+" of this host "+verb+" readable.")
	}
	e.Add("Not evaluated", "temperature, optical power and supply voltage of this transceiver.")
	return fault.Text{
		Summary: f.AtNetdev() + ": transceiver stopped responding, link is up",
		Description: "The transceiver was readable after the exporter started and does not respond on its management " +
			"bus (I2C) any longer, while its link is up. The link is not affected. Temperature, optical power and supply " +
			"voltage are not evaluated: alerts on this transceiver cannot fire.",
		Evidence: e,
		Diagnose: "ethtool -m " + fault.Pasted(f.Labels["netdev"]) +
			" ; journalctl -k | grep -iE 'module|eeprom|mcia' # as root",
		Action: "Stop other programs that read the transceiver (vendor agents, mlxlink). If it stays unreadable, " +
			"reseat it in the next maintenance, then replace it.",
		DrainReason: "The link works, only its transceiver is not monitored.",
	}
}

func transceiverVoltage(f *fault.Fault) fault.Text {
	now, level := fmt.Sprintf(volts, f.Value), limitLevel(f)
	reported := limits{f.Rows(`max by (level) (rdma_transceiver_voltage_threshold_volts{$netdev})`, "level"), volts}
	limit := reported.crossed(f.Value, level)
	var e fault.Lines
	e.Add("Voltage", now+".")
	e.Add("Transceiver limits", reported.sentence())
	e.Add("Other transceivers", otherTransceivers(f, "rdma_transceiver_voltage_volts", volts))
	e.Add("Not evaluated", "the supply voltage of the NIC.")
	t := fault.Text{
		Summary: f.AtNetdev() + ": transceiver supply voltage " + now +
			fault.When(limit != "", " ("+level+" limit "+limit+")"),
		Description: "The supply voltage of the transceiver is " + now + ", beyond its " + level + " limit" +
			fault.When(limit != "", " of "+limit) + ". Low voltage impairs lasers and signal processors: errors, then loss of " +
			"the link. High voltage shortens their life.",
		Evidence: e,
		Diagnose: diagnoseOptics(f),
		Action: "Drain the host first: the repair takes the link down. Reseat the transceiver. If the fault stays, " +
			"move it to another cage: if the voltage stays with the cage, replace the NIC. If it goes with the " +
			"transceiver, replace the transceiver.",
		DrainReason: "The link works; a wrong supply voltage leads to errors only later.",
	}
	if limit != "" {
		t.Measured, t.Limit = now, limit
	}
	return t
}

// diagnoseOptics returns commands that show the readings of the transceiver, and those of all.
func diagnoseOptics(f *fault.Fault) string {
	return "ethtool -m " + fault.Pasted(f.Labels["netdev"]) + " ; rdma_exporter optics # as root"
}

// otherTransceivers returns readings of the other transceivers of the host: "ens3f0np0 45.0 °C, ens3f1np1 47.0 °C.".
func otherTransceivers(f *fault.Fault, metric, format string) string {
	var others []string
	for _, r := range f.Rows(`max by (netdev) (`+metric+`{$host})
		unless on (netdev) max by (netdev) (rdma_transceiver_duplicate_info{$host})`, "netdev") {
		if netdev := r.Labels["netdev"]; netdev != f.Labels["netdev"] {
			others = append(others, netdev+" "+fmt.Sprintf(format, r.Value))
		}
	}
	return sentenceOf(others)
}

// limitLevel returns the level of limits that the rule compares with, which is reported at its severity.
func limitLevel(f *fault.Fault) string {
	if f.Labels["severity"] == "info" {
		return "warning"
	}
	return "alarm"
}

// limits are those that a transceiver reports, with a label level: high_alarm, high_warning, low_alarm, low_warning.
type limits struct {
	rows   []fault.Sample // by level
	format string
}

// at returns the limit of a level; empty: the transceiver reports none.
func (l limits) at(level string) string {
	for _, r := range l.rows {
		if r.Labels["level"] == level {
			return fmt.Sprintf(l.format, r.Value)
		}
	}
	return ""
}

// crossed returns the alarm or warning limit that a value is beyond; empty: none.
func (l limits) crossed(value float64, level string) string {
	for _, r := range l.rows {
		at := r.Labels["level"]
		if at == "high_"+level && r.Value < value || at == "low_"+level && r.Value > value {
			return fmt.Sprintf(l.format, r.Value)
		}
	}
	return ""
}

// sentence returns all limits: "high alarm 75.0 °C, high warning 70.0 °C."; empty: the transceiver reports none.
func (l limits) sentence() string {
	return sentenceOf(words.Map(l.rows, func(r fault.Sample) string {
		return words.Spaced(r.Labels["level"]) + " " + fmt.Sprintf(l.format, r.Value)
	}))
}

// sentenceOf returns a list as a sentence; empty: the list is.
func sentenceOf(list []string) string { return fault.When(len(list) > 0, strings.Join(list, ", ")+".") }
