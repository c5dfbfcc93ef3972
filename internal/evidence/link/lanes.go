package link

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// laneFaults are those of lanes of transceivers.
var laneFaults = fault.Kinds{
	"link_wearing/optics": {Write: opticsDrift, Measure: `port:rdma_optics_drift:info{$port}`},
	"transceiver_out_of_range/bias": {
		Write: transceiverBias,
		Measure: `max without (direction) (port:rdma_transceiver_bias:alarm{$port}) ` +
			`or port:rdma_transceiver_bias:info{$port}`,
	},
	"transceiver_out_of_range/lane_dark": {
		Write:   transceiverLaneDark,
		Measure: `port:rdma_transceiver_lane_dark:warning{$port}`,
	},
	"transceiver_out_of_range/lane_imbalance": {
		Write:   transceiverLaneImbalance,
		Measure: `port:rdma_transceiver_lane_imbalance:info{$port}`,
	},
	"transceiver_out_of_range/power_high": {
		Write: transceiverPowerHigh,
		Measure: `port:rdma_transceiver_power_high:warning{$port} ` +
			`or port:rdma_transceiver_power_high:info{$port}`,
	},
	"transceiver_out_of_range/power_low": {
		Write: transceiverPowerLow,
		Measure: `port:rdma_transceiver_power_low:warning{$port} ` +
			`or port:rdma_transceiver_power_low:info{$port}`,
	},
}

// Lanes in use, their power and its limits; $direction is receive or transmit, as in the alert.
const (
	judgedLanes = `lane:rdma_transceiver_lane:judged{$netdev}`
	judgedPower = `lane:rdma_transceiver_power:judged{$netdev,$direction}`
	powerLimits = `port:rdma_transceiver_power:limit{$netdev,$direction}`
	darkLanes   = judgedPower + ` <= {lane-dark-dbm}`
)

func transceiverBias(f *fault.Fault) fault.Text {
	now, level := fmt.Sprintf(milliamperes, f.Value*1e3), limitLevel(f)
	reported := limits{f.Rows(
		`max by (level) (rdma_transceiver_bias_threshold_amperes{$netdev}) * 1e3`, "level"), milliamperes}
	limit := reported.crossed(f.Value*1e3, level)
	is := ofLane(laneOfValue(f, `lane:rdma_transceiver_bias:judged{$netdev}`)) + " is " + now
	prospect := "A laser above its alarm has weeks to live, not years."
	if level == "warning" {
		prospect = "A laser above its warning has aged: its bias rises further, then its power falls."
	}
	e := laneReadings(f)
	e.Add("Bias limits", reported.sentence())
	e.Add("Transmit limits", limits{f.Rows(
		`port:rdma_transceiver_power:limit{$netdev,direction="transmit",level=~"low.*"}`, "level"), dbm}.sentence())
	e.Add("Not evaluated", "the remaining life of the laser.")
	t := fault.Text{
		Summary: f.AtNetdev() + ": laser bias" + is + fault.When(limit != "", " ("+level+" limit "+limit+")"),
		Description: "Laser bias" + is + ", beyond the " + level + " limit of the transceiver" +
			fault.When(limit != "", " ("+limit+")") + ". The link works as long as the power of the laser is within its " +
			"limits. " + prospect,
		Evidence: e,
		Diagnose: diagnoseOptics(f),
		Action: "If the bias is high, order a transceiver and replace this one in the next maintenance, at once if its " +
			"transmit power falls. If the bias is low with normal power, its measurement is wrong: replace the " +
			"transceiver.",
		DrainReason: "The link works; drain the host only to replace the transceiver.",
	}
	if limit != "" {
		t.Measured, t.Limit = now, limit
	}
	return t
}

// powerTexts is what the texts of high and of low power differ in.
type powerTexts struct {
	side, beyond   string
	alarm, warning string // what power beyond that limit does
	receive        string // action, if it is the power received
	transmit       string
}

var highPower = powerTexts{
	side:   "high",
	beyond: "above",
	alarm: "Too much power overdrives the receiver: it causes errors, as too little does, and can damage the " +
		"receiver in the long run.",
	warning: "Too much power can overdrive the receiver, which causes errors as too little does.",
	receive: "Insert an attenuator, or use transceivers for a shorter reach at both ends.",
	transmit: "Reseat the transceiver. If the power stays high, its laser or its measurement is at fault: replace " +
		"the transceiver.",
}

var lowPower = powerTexts{
	side:    "low",
	beyond:  "below",
	alarm:   "The power margin of the link is used up: errors come next, then loss of the link.",
	warning: "The link works with little power margin left; further loss causes errors.",
	receive: "Drain the host first: the repair takes the link down. Inspect and clean the end faces at both ends and " +
		"at patch panels, and check the fibre for bends. If the power stays low, swap the fibre, then the transceiver " +
		"at the far end.",
	transmit: "Compare the bias of this lane with the other lanes. Drain the host, reseat the transceiver. If the " +
		"power stays low, replace the transceiver.",
}

func transceiverPowerHigh(f *fault.Fault) fault.Text { return power(f, &highPower) }

func transceiverPowerLow(f *fault.Fault) fault.Text { return power(f, &lowPower) }

// power returns the texts of a lane with power beyond a limit.
func power(f *fault.Fault, x *powerTexts) fault.Text {
	direction, level := f.Labels["direction"], limitLevel(f)
	now := fmt.Sprintf(dbm, f.Value)
	is := " power" + ofLane(laneOfValue(f, directed(f, judgedPower))) + " is " + now
	reported := limitsOfPower(f)
	limit := reported.at(x.side + "_" + level)
	effect, action := x.alarm, x.transmit
	if level == "warning" {
		effect = x.warning
	}
	if direction == "receive" {
		action = x.receive
	}
	e := laneReadings(f)
	e.Add(capital(direction)+" limits", reported.sentence())
	e.Add("Not evaluated", "readings at the far end; lanes of ports that are down.")
	t := fault.Text{
		Summary: f.AtNetdev() + ": " + direction + is + fault.When(limit != "", " ("+level+" limit "+limit+")"),
		Description: capital(direction) + is + ", " + x.beyond + " the " + level + " limit of the transceiver" +
			fault.When(limit != "", " ("+limit+")") + ". " + effect,
		Evidence:    e,
		Diagnose:    diagnoseOptics(f),
		Action:      action,
		DrainReason: "The link works; plan the repair before " + x.side + " power causes errors.",
	}
	if limit != "" {
		t.Measured, t.Limit = now, limit
	}
	return t
}

func transceiverLaneImbalance(f *fault.Fault) fault.Text {
	direction := f.Labels["direction"]
	differs := " power differs by " + fmt.Sprintf("%.1f dB", f.Value) + " between "
	e := laneReadings(f)
	e.Add(capital(direction)+" limits", limitsOfPower(f).sentence())
	e.Add("Not evaluated", "readings at the far end; whether lanes of a wavelength-multiplexed link differ by design.")
	action := "Monitor the bias of the weakest lane: if it rises, the laser ages. Then replace the transceiver."
	if direction == "receive" {
		action = "Drain the host first: the repair takes the link down. Inspect and clean the end faces at both ends " +
			"in the next maintenance, the weakest lane first. Compare with the transmit power of the far end before " +
			"anything is replaced."
	}
	return fault.Text{
		Summary: f.AtNetdev() + ": " + direction + differs + "lanes (limit 3 dB)",
		Description: capital(direction) + differs + "the lanes of the transceiver (limit 3 dB), all lanes are within " +
			"its limits. The link works. The weakest lane has the least margin and is the first with errors when dirt or " +
			"age costs more power.",
		Evidence: e,
		Measured: fmt.Sprintf("%.1f dB", f.Value),
		Limit:    "3 dB",
		Diagnose: "ethtool -m " + fault.Pasted(f.Labels["netdev"]) + " ; mlxlink -d " + fault.Pasted(f.Labels["device"]) +
			" -m -c # as root, mlxlink needs MFT",
		Action:      action,
		DrainReason: "The link works, all lanes are within the limits of the transceiver.",
	}
}

func transceiverLaneDark(f *fault.Fault) fault.Text {
	direction := f.Labels["direction"]
	lanes := fault.Plain(f.Value) + f.Text(directed(f, `count(`+judgedPower+`)`), " of %v", "") + " lanes"
	if dark := f.LabelsOf(directed(f, darkLanes), "lane"); len(dark) > 0 {
		lanes = fault.When(len(dark) == 1, "lane ") + fault.When(len(dark) > 1, "lanes ") + words.Join(", ", dark...) +
			" (" + lanes + ")"
	}
	darkest := f.Text(directed(f, `min(`+judgedPower+`)`), dbm, "")
	action := "Reseat this transceiver, whose laser is off or has failed, then replace it."
	if direction == "receive" {
		action = "Inspect and clean the fibre end faces at both ends. Swap the fibre, then the transceiver at the far " +
			"end, whose laser can be the dark one."
	}
	t := fault.Text{
		Summary: f.AtNetdev() + ": transceiver " + direction + "s no light on " + lanes +
			fault.When(darkest != "", ", "+darkest+" (limit {lane-dark-dbm} dBm)"),
		Description: "The " + direction + " power of " + lanes + " is" + fault.When(darkest != "", " "+darkest) +
			" (limit {lane-dark-dbm} dBm) while the port is ACTIVE. The link runs on fewer lanes or with errors, or is about to go " +
			"down.",
		Evidence:    evidenceOfDarkLanes(f),
		Diagnose:    "ethtool -m " + fault.Pasted(f.Labels["netdev"]) + " # as root",
		Action:      "Drain the host first: the repair takes the link down. " + action,
		DrainReason: "The link is up and carries the traffic of its jobs; repair it at the next opportunity.",
	}
	if darkest != "" {
		t.Measured, t.Limit = darkest, "{lane-dark-dbm} dBm"
	}
	return t
}

func evidenceOfDarkLanes(f *fault.Fault) (e fault.Lines) {
	e.Add("Temperature", f.Text(temperatureNow, celsius+".", ""))
	for _, lane := range f.LabelsOf(judgedLanes, "lane") {
		e.Add("Lane "+lane, "receive power "+
			f.Text(atLane("rdma_transceiver_receive_power_dbm", lane), dbm, "not available")+
			f.Text(atLane("rdma_transceiver_transmit_power_dbm", lane), ", transmit power "+dbm, "")+
			f.Text(atLane("rdma_transceiver_bias_amperes", lane)+" * 1e3", ", bias "+milliamperes, "")+".")
	}
	if all := limitsOfPower(f).sentence(); all != "" {
		e.Add("Transceiver limits", f.Labels["direction"]+" power "+all)
	}
	e.Add("Not evaluated", "the transceiver at the far end.")
	return e
}

func opticsDrift(f *fault.Fault) fault.Text {
	alarm := f.Text(`max(rdma_transceiver_receive_power_threshold_dbm{$netdev,level="low_alarm"})`, dbm, "")
	var e fault.Lines
	for _, lane := range f.LabelsOf(judgedLanes, "lane") {
		receive, bias := receiveOfLane(f, lane), biasOfLane(f, lane)
		e.Add("Lane "+lane, "mean of 1h receive "+receive.now+", normal "+receive.normal+
			"; bias "+bias.now+", normal "+bias.normal+".")
	}
	if alarm != "" {
		e.Add("Receive alarm limit", alarm+".")
	}
	e.Add("Limits", "receive power 2 dB below normal, bias 20% above normal, receive power 1 dB above the alarm limit.")
	e.Add("Not evaluated", "the far end, other than by the light received here.")
	t := fault.Text{
		Evidence: e,
		Diagnose: "rdma_exporter optics ; ethtool -m " + fault.Pasted(f.Labels["netdev"]) + " # as root",
		Action: "At the next maintenance inspect and clean the end faces at both ends, and check the fibre for bends. " +
			"If the power stays low, swap the transceiver at the far end, then the fibre. After a repair that keeps the " +
			"transceiver, run rdma_exporter accept " + f.PastedPort() +
			": the baseline begins anew.",
		DrainReason: "The link works: the repair can be planned.",
	}
	switch f.Labels["kind"] {
	case "bias":
		driftOfBias(f, &t)
	case "receive_power":
		driftOfPower(f, &t)
	default:
		driftOfMargin(f, &t, cmp.Or(alarm, "unknown"))
	}
	return t
}

func driftOfBias(f *fault.Fault, t *fault.Text) {
	lane := laneOfValue(f, `lane:rdma_laser_bias:rise{$netdev}`)
	bias, rise := biasOfLane(f, lane), fmt.Sprintf("%.0f%%", f.Value)
	t.Summary = f.AtNetdev() + ": laser bias" + ofLane(lane) + " has risen by " + rise +
		" since the transceiver was new here: " + bias.now + " (normal " + bias.normal + ", limit 20% above for 24h)"
	t.Description = "A laser needs more current for the same light than when the transceiver was new in this port. " +
		"It ages: the link works until its power falls."
	t.Action = "Order a transceiver and replace this one at the next maintenance."
	t.Measured, t.Limit = rise, "20%"
}

func driftOfPower(f *fault.Fault, t *fault.Text) {
	lane := laneOfValue(f, `lane:rdma_receive_power:drop{$netdev}`)
	receive, drop := receiveOfLane(f, lane), fmt.Sprintf("%.1f dB", f.Value)
	t.Summary = f.AtNetdev() + ": receive power" + ofLane(lane) + " has dropped by " + drop +
		" since the transceiver was new here: " + receive.now + " (normal " + receive.normal +
		", limit 2 dB below for 24h)"
	t.Description = "The port receives less light than when its transceiver was new here: dirt, a bent fibre, or an " +
		"ageing laser at the far end. The link works until the margin is used up."
	t.Measured, t.Limit = drop, "2 dB"
}

func driftOfMargin(f *fault.Fault, t *fault.Text, alarm string) {
	lane := laneOfValue(f, `lane:rdma_receive_power:margin{$netdev}`)
	receive, margin := receiveOfLane(f, lane), fmt.Sprintf("%.1f dB", f.Value)
	t.Summary = f.AtNetdev() + ": receive power" + ofLane(lane) + " is only " + margin +
		" above the alarm limit of the transceiver: " + receive.now + " (alarm limit " + alarm +
		", limit 1 dB above for 24h)"
	t.Description = "The port receives little more light than the transceiver needs. The link works, without margin " +
		"for dirt or ageing."
	t.Measured, t.Limit = margin, "1 dB"
}

// laneMean is a reading of a lane, its mean of 1h and that of when the transceiver was new.
type laneMean struct{ now, normal string }

func receiveOfLane(f *fault.Fault, lane string) laneMean {
	return laneMean{
		now:    f.Text(atLane("lane:rdma_receive_power:mean1h", lane), dbm, "unknown"),
		normal: f.Text(atLane("rdma_transceiver_receive_power_baseline_dbm", lane), dbm, "unknown"),
	}
}

func biasOfLane(f *fault.Fault, lane string) laneMean {
	return laneMean{
		now:    f.Text(atLane("lane:rdma_laser_bias:mean1h", lane)+" * 1e3", milliamperes, "unknown"),
		normal: f.Text(atLane("rdma_transceiver_bias_baseline_amperes", lane)+" * 1e3", milliamperes, "unknown"),
	}
}

// laneReadings returns the temperature of the transceiver, power and bias of each lane in use.
func laneReadings(f *fault.Fault) (e fault.Lines) {
	e.Add("Temperature", f.Text(temperatureNow, celsius+".", ""))
	for _, lane := range f.LabelsOf(judgedLanes, "lane") {
		e.Add("Lane "+lane, "receive "+f.Text(atLane("rdma_transceiver_receive_power_dbm", lane), dbm, "unknown")+
			", transmit "+f.Text(atLane("rdma_transceiver_transmit_power_dbm", lane), dbm, "unknown")+
			", bias "+f.Text(atLane("rdma_transceiver_bias_amperes", lane)+" * 1e3", milliamperes, "unknown")+".")
	}
	return e
}

// limitsOfPower returns the limits of power in the direction of the alert.
func limitsOfPower(f *fault.Fault) limits {
	return limits{f.Rows(directed(f, powerLimits), "level"), dbm}
}

// laneOfValue returns the first lane with the value of the alert, which is that of the worst lane.
func laneOfValue(f *fault.Fault, expr string) string {
	for _, r := range f.Rows(expr, "lane") {
		if r.Value == f.Value {
			return r.Labels["lane"]
		}
	}
	return ""
}

// directed replaces $direction in an expression.
func directed(f *fault.Fault, expr string) string {
	return strings.ReplaceAll(expr, "$direction", "direction="+strconv.Quote(f.Labels["direction"]))
}

// atLane returns the expression of a metric of a lane.
func atLane(metric, lane string) string {
	return "max(" + metric + "{$netdev,lane=" + strconv.Quote(lane) + "})"
}

// ofLane names a lane behind what it has; without a lane it is empty.
func ofLane(lane string) string { return fault.When(lane != "", " of lane "+lane) }

// capital returns a direction at the beginning of a sentence.
func capital(direction string) string {
	if direction == "receive" {
		return "Receive"
	}
	return "Transmit"
}
