package link

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/evidence/fault"
)

// berFaults are those of bits that FEC corrects.
var berFaults = fault.Kinds{
	"link_errors/ber":  {Write: linkBERHigh},
	"link_errors/lane": {Write: laneBERHigh, Measure: `max by (lane) (port:rdma_link_lane_raw_ber:high{$port})`},
	"link_wearing/ber": {Write: linkBERRising},
}

// fecCorrects is why jobs need not leave a host with bit errors.
const fecCorrects = "FEC corrects the errors: the repair can be planned."

// highAtEnd has a result if an end of the link has a bit error ratio above a limit.
const highAtEnd = `max by (end) (port:rdma_link_raw_ber:ratio10m{$end}) >= ` +
	`max by (end) (port:rdma_link_raw_ber:warning_limit{$end}) or ` +
	`max by (end) (port:rdma_link_effective_ber:ratio1h{$end}) >= ` +
	`0.5 * max by (end) (port:rdma_link_effective_ber:error_limit{$end})`

func linkBERHigh(f *fault.Fault) fault.Text {
	ratio := fmt.Sprintf("%.1e", f.Value)
	kind, window, limit := exceededBER(f)
	t := fault.Text{
		Summary: f.Where() + ": " + kind + " BER " + ratio + " over " + window + " (limit " + limit + ")",
		Description: "The link has more bit errors than a healthy link of its kind. FEC still corrects them, and " +
			"jobs are not affected. The rate rises as a transceiver ages or a connector gets dirty, until FEC cannot " +
			"correct all and packets are lost.",
		Measured:    ratio,
		Limit:       limit,
		Diagnose:    diagnoseBER(f),
		DrainReason: fecCorrects,
	}
	if system, port, ok := neighbour(f); ok {
		t.Summary += ", far end " + fault.PortOf(system, port)
	}
	for _, r := range f.Rows(`max by (generation, speed, mode, medium) (port:rdma_link_kind:info{end="own",$port})`) {
		l := r.Labels
		t.Description += " Kind of link: " + l["speed"] + ", " + l["generation"] +
			", FEC " + cmp.Or(l["mode"], "unknown") + ", medium " + cmp.Or(l["medium"], "unknown") + "."
	}
	ends := bothEnds(f, f.Has(atEnd(highAtEnd, ownEnd)), f.Has(atEnd(highAtEnd, farEnd)))
	t.Action = ends.repair("Both ends have errors, which points to what both directions share",
		" at the next maintenance", unevenLanes(f, ends.end))
	var e fault.Lines
	addBER(f, &e, true)
	addUnreadEnds(f, &e, `{__name__=~"port:rdma_link_raw_ber:ratio10m|port:rdma_link_effective_ber:ratio1h",$end}`,
		"errors")
	e.Add("Not evaluated", "errors within 17m of link-up, eye opening and margins (registers of the vendor).")
	t.Evidence = e
	return t
}

// exceededBER says which bit error ratio is above its limit, over which time, and the limit: that of the warning, if
// there is one. The raw ratio is foremost.
func exceededBER(f *fault.Fault) (kind, window, limit string) {
	rawLimit, factor := `port:rdma_link_raw_ber:warning_limit{$port}`, `0.5`
	if f.Has(`port:rdma_link_ber:warning{$port}`) {
		rawLimit, factor = `port:rdma_link_raw_ber:error_limit{$port}`, `1`
	}
	raw := f.Has(`max by (end) (port:rdma_link_raw_ber:ratio10m{$port}) >= max by (end) (` + rawLimit + `)`)
	effective := f.Has(`max by (end) (port:rdma_link_effective_ber:ratio1h{$port}) >= ` +
		factor + ` * max by (end) (port:rdma_link_effective_ber:error_limit{$port})`)
	if effective && !raw {
		limit = f.Text(factor+` * max(port:rdma_link_effective_ber:error_limit{$port})`, "%.1e", "unknown")
		return "effective", "1h", limit
	}
	limit = f.Text(`max(`+rawLimit+` and on (end) topk(1, max by (end) (port:rdma_link_raw_ber:ratio10m{$port})))`,
		"%.1e", "unknown")
	return "raw", "10m", limit
}

func laneBERHigh(f *fault.Fault) fault.Text {
	lane, ratio := f.Labels["lane"], fmt.Sprintf("%.1e", f.Value)
	own := f.Has(`port:rdma_link_lane_raw_ber:high{end="own",$port,lane=` + strconv.Quote(lane) + `}`)
	ends := bothEnds(f, own, !own)
	median := atEnd(`quantile(0.5, port:rdma_link_lane_raw_ber:ratio10m{$end})`, ends.end)
	limit := f.Text(`clamp_min(100 * `+median+`, 1e-08)`, "%.1e", "unknown")
	var e fault.Lines
	lanes := f.Rows(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:ratio10m{$end})`, ends.end), "lane")
	e.Add("Raw BER", fault.ListedByLane(lanes, "%.1e")+", over 10m at "+endName(ends.end)+
		" (limit 1e-08 and 100 times the median lane).")
	for _, netdev := range f.LabelsOf(withReceivePower, "netdev") {
		e.Add("Receive power", fault.ListedByLane(receivePower(f, netdev), "%.1f dBm")+", transceiver in "+netdev+".")
	}
	e.Add("Lanes", "the counter numbers them from 0, the transceiver (CMIS, SFF-8636) from 1.")
	e.Add("Not evaluated", "eye opening and margins (registers of the vendor).")
	return fault.Text{
		Summary: f.Where() + ": one bad lane: lane " + lane + fault.When(!own, " of the far end") + " receives " + ratio +
			" errors per bit before FEC over 10m (median lane " + f.Text(median, "%.1e", "unknown") +
			", limit " + limit + "); FEC still corrects them",
		Description: "One lane of the link has far more bit errors before FEC than the other lanes. FEC corrects " +
			"them, and jobs are not affected. Lanes share age, temperature and dirt: a single bad lane is a failing " +
			"laser, driver or receiver, or dirt on one fibre.",
		Evidence: e,
		Measured: ratio,
		Limit:    limit,
		Diagnose: diagnoseBER(f),
		Action: "Clean and reseat the cable at " + ends.rx + " at the next maintenance. If lane " + lane +
			" stays bad, swap the transceiver of " + ends.tx + ", then the cable, then the transceiver of " + ends.rx + ".",
		DrainReason: fecCorrects,
	}
}

// mostRisen has the measurement of the port whose bit errors rose most.
const mostRisen = ` and on (netdev, end) topk(1, port:rdma_link_raw_ber:baseline_factor{$port})`

func linkBERRising(f *fault.Fault) fault.Text {
	const risenAtEnd = `port:rdma_link_raw_ber:baseline_factor{$end} >= 10`
	factor, limit := fault.Whole(f.Value), "10"
	if f.Has(`port:rdma_link_ber_rising:warning{$port}`) {
		limit = "100"
	}
	ends := bothEnds(f, f.Has(atEnd(risenAtEnd, ownEnd)), f.Has(atEnd(risenAtEnd, farEnd)))
	return fault.Text{
		Summary: f.Where() + ": bit errors are increasing: " +
			f.Text(`max(port:rdma_link_raw_ber:ratio10m{$port}`+mostRisen+`)`, "%.1e", "unknown") +
			" errors per bit before FEC, " + factor + " times the " +
			f.Text(`max(rdma_port_fec_ber_baseline{$port}`+mostRisen+`)`, "%.1e", "unknown") +
			" that is normal for this link (limit " + limit + " times for 1h); FEC still corrects them",
		Description: "The link has far more bit errors before FEC than when its transceiver was new here. FEC " +
			"corrects them, and jobs are not affected. The rate rises as a transceiver ages or a connector gets " +
			"dirty, until FEC cannot correct all.",
		Evidence: evidenceOfRise(f),
		Measured: factor,
		Limit:    limit + " times",
		Diagnose: diagnoseBER(f),
		Action: ends.repair("Both ends", " at the next maintenance", nil) +
			" After a repair that keeps the transceiver, run rdma_exporter accept " + f.PastedPort() +
			": the baseline begins anew.",
		DrainReason: fecCorrects,
	}
}

func evidenceOfRise(f *fault.Fault) (e fault.Lines) {
	for _, r := range f.Rows(`max by (netdev, end) (port:rdma_link_raw_ber:ratio10m{$port})`, "end", "netdev") {
		end := r.Labels["end"]
		baseline := atEnd(`max(rdma_port_fec_ber_baseline{$end,netdev=`+strconv.Quote(r.Labels["netdev"])+`})`, end)
		e.Add("Raw BER", fmt.Sprintf("%.1e over 10m at %s, baseline %s (limits 1e-07, and 10 times the baseline info, "+
			"100 times warning).", r.Value, endName(end), f.Text(baseline, "%.1e", "unknown")))
	}
	for _, r := range f.Rows(`min by (end) (rdma_port_fec_ber_baseline_start_timestamp_seconds{$port})`, "end") {
		e.Add("Baseline", "began "+fault.UTC(r.Value)+" at "+endName(r.Labels["end"])+".")
	}
	e.Add("Not evaluated", "errors within 17m of link-up, eye opening and margins (registers of the vendor).")
	return e
}

// addBER adds the bit error ratios that each end receives.
func addBER(f *fault.Fault, e *fault.Lines, withLimits bool) {
	for _, r := range f.Rows(`max by (end) (port:rdma_link_raw_ber:ratio10m{$port})`, "end") {
		end, more := r.Labels["end"], ""
		if withLimits {
			more = " (limits " + f.Text(atEnd(`max(port:rdma_link_raw_ber:warning_limit{$end})`, end), "%.1e", "unknown") +
				" info, " + f.Text(atEnd(`max(port:rdma_link_raw_ber:error_limit{$end})`, end), "%.1e warning",
				"no warning for this kind of link") + ")"
		}
		lanes := f.Rows(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:ratio10m{$end})`, end), "lane")
		more += fault.When(len(lanes) > 0, ", by lane "+fault.Listed(lanes, "%.1e"))
		e.Add("Raw BER", ratioOrFloor(f, r, `max(port:rdma_link_raw_ber:floor10m{$port})`)+
			" over 10m at "+endName(end)+more+".")
	}
	for _, r := range f.Rows(`max by (end) (port:rdma_link_effective_ber:ratio1h{$port})`, "end") {
		end, more := r.Labels["end"], ""
		if withLimits {
			more = f.Text(atEnd(`max(port:rdma_link_effective_ber:error_limit{$end})`, end), " (limits "+
				f.Text(`0.5 * max(port:rdma_link_effective_ber:error_limit{$port})`, "%.1e", "")+" info, %.1e warning)", "")
		}
		e.Add("Effective BER", ratioOrFloor(f, r, `max(port:rdma_link_effective_ber:floor1h{$port})`)+
			" over 1h at "+endName(end)+more+".")
	}
}

// ratioOrFloor returns a bit error ratio; without an error it is below what the bits so far can show.
func ratioOrFloor(f *fault.Fault, r fault.Sample, floor string) string {
	if r.Value > 0 {
		return fmt.Sprintf("%.1e", r.Value)
	}
	return "below " + f.Text(floor, "%.0e", "")
}

// addUnreadEnds names the ends of the link that an expression has no result for.
func addUnreadEnds(f *fault.Fault, e *fault.Lines, expr, what string) {
	if !f.Has(atEnd(expr, ownEnd)) {
		e.Add("Not evaluated", what+" at this end (no counter, or saturated).")
	}
	if !f.Has(atEnd(expr, farEnd)) {
		e.Add("Not evaluated", what+" at the far end (not read, or saturated).")
	}
}

// unevenLanes returns the lanes with far more errors than the others that an end receives.
func unevenLanes(f *fault.Fault, end string) []string {
	return f.LabelsOf(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:uneven{$end})`, end), "lane")
}

func diagnoseBER(f *fault.Fault) string {
	return ethtoolErrors(f, "corrected|err_lane") + mlxlinkErrors(f)
}

// Values of the label end: which end of the link receives the errors.
const (
	ownEnd = "own"
	farEnd = "neighbour"
)

// atEnd replaces $end in an expression by the matchers of an end of the link of the port.
func atEnd(expr, end string) string {
	return strings.ReplaceAll(expr, "$end", "end="+strconv.Quote(end)+",$port")
}

func endName(end string) string {
	if end == ownEnd {
		return "this end"
	}
	return "the far end"
}

// neighbour returns the port at the far end of the link; false: unknown.
func neighbour(f *fault.Fault) (system, port string, ok bool) {
	rows := f.Rows(`max by (system, port_id) (rdma_port_neighbour_info{$port})`, "system", "port_id")
	if len(rows) == 0 {
		return "", "", false
	}
	return rows[0].Labels["system"], rows[0].Labels["port_id"], true
}

// linkEnds are both ends of the link of a port.
type linkEnds struct {
	own, far    bool   // which of them receive errors
	here, there string // their names
	tx, rx      string // the ends that transmit and receive the errors
	end         string // the receiving one, as a label
}

func bothEnds(f *fault.Fault, own, far bool) linkEnds {
	here, there := f.HostPort(), "the far end"
	if system, port, ok := neighbour(f); ok {
		there = fault.PortOf(fault.Pasted(system), fault.Pasted(port))
	}
	if far && !own {
		return linkEnds{own, far, here, there, here, there, farEnd}
	}
	return linkEnds{own, far, here, there, there, here, ownEnd}
}

// repair says what to clean and swap at which end. The sentence for errors at both ends has a beginning of its own;
// maintenance says when to do it.
func (e linkEnds) repair(both, maintenance string, badLanes []string) string {
	switch {
	case e.own && e.far:
		return both + ": clean and reseat both ends of the cable (" + e.here + ", " + e.there + ")" + maintenance +
			", then swap the cable."
	case len(badLanes) > 0:
		return "One lane is bad (lane " + strings.Join(badLanes, ", ") + " from " + e.tx + " to " + e.rx +
			"): swap the transceiver of " + e.tx + maintenance + ", then the cable."
	}
	return "Errors from " + e.tx + " to " + e.rx + ": clean and reseat the cable at " + e.rx + maintenance +
		", then swap the transceiver of " + e.tx + ", then the cable."
}
