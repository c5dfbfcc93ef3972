package evidence

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// fecCorrects is why jobs need not leave a host with bit errors.
const fecCorrects = "FEC corrects the errors: the repair can be planned."

// highAtEnd has a result if an end of the link has a bit error ratio above a limit.
const highAtEnd = `max by (end) (port:rdma_link_raw_ber:ratio10m{$end}) >= ` +
	`max by (end) (port:rdma_link_raw_ber:warning_limit{$end}) or ` +
	`max by (end) (port:rdma_link_effective_ber:ratio1h{$end}) >= ` +
	`0.5 * max by (end) (port:rdma_link_effective_ber:error_limit{$end})`

func linkBERHigh(f *Fault) Text {
	ratio := fmt.Sprintf("%.1e", f.Value)
	kind, window, limit := f.exceededBER()
	t := Text{
		Summary: f.where() + ": " + kind + " BER " + ratio + " over " + window + " (limit " + limit + ")",
		Description: "The link has more bit errors than a healthy link of its kind. FEC still corrects them, and " +
			"jobs are not affected. The rate rises as a transceiver ages or a connector gets dirty, until FEC cannot " +
			"correct all and packets are lost.",
		Measured:    ratio,
		Limit:       limit,
		Diagnose:    f.diagnoseBER(),
		DrainReason: fecCorrects,
	}
	if system, port, ok := f.neighbour(); ok {
		t.Summary += ", far end " + portOf(system, port)
	}
	for _, r := range f.rows(`max by (generation, speed, mode, medium) (port:rdma_link_kind:info{end="own",$port})`) {
		l := r.Labels
		t.Description += " Kind of link: " + l["speed"] + ", " + l["generation"] +
			", FEC " + cmp.Or(l["mode"], "unknown") + ", medium " + cmp.Or(l["medium"], "unknown") + "."
	}
	ends := f.linkEnds(f.has(atEnd(highAtEnd, ownEnd)), f.has(atEnd(highAtEnd, farEnd)))
	t.Action = ends.repair("Both ends have errors, which points to what both directions share",
		" at the next maintenance", f.badLanes(ends.end))
	var e lines
	f.addBER(&e, true)
	f.addUnreadEnds(&e, `{__name__=~"port:rdma_link_raw_ber:ratio10m|port:rdma_link_effective_ber:ratio1h",$end}`,
		"errors")
	e.add("Not evaluated", "errors within 17m of link-up, eye opening and margins (registers of the vendor).")
	t.Evidence = e
	return t
}

// exceededBER says which bit error ratio is above its limit, over which time, and the limit: that of the warning, if
// there is one. The raw ratio is foremost.
func (f *Fault) exceededBER() (kind, window, limit string) {
	rawLimit, factor := `port:rdma_link_raw_ber:warning_limit{$port}`, `0.5`
	if f.has(`port:rdma_link_ber:warning{$port}`) {
		rawLimit, factor = `port:rdma_link_raw_ber:error_limit{$port}`, `1`
	}
	raw := f.has(`max by (end) (port:rdma_link_raw_ber:ratio10m{$port}) >= max by (end) (` + rawLimit + `)`)
	effective := f.has(`max by (end) (port:rdma_link_effective_ber:ratio1h{$port}) >= ` +
		factor + ` * max by (end) (port:rdma_link_effective_ber:error_limit{$port})`)
	if effective && !raw {
		limit = f.text(factor+` * max(port:rdma_link_effective_ber:error_limit{$port})`, "%.1e", "unknown")
		return "effective", "1h", limit
	}
	limit = f.text(`max(`+rawLimit+` and on (end) topk(1, max by (end) (port:rdma_link_raw_ber:ratio10m{$port})))`,
		"%.1e", "unknown")
	return "raw", "10m", limit
}

func laneBERHigh(f *Fault) Text {
	lane, ratio := f.Labels["lane"], fmt.Sprintf("%.1e", f.Value)
	own := f.has(`port:rdma_link_lane_raw_ber:high{end="own",$port,lane=` + strconv.Quote(lane) + `}`)
	ends := f.linkEnds(own, !own)
	median := atEnd(`quantile(0.5, port:rdma_link_lane_raw_ber:ratio10m{$end})`, ends.end)
	limit := f.text(`clamp_min(100 * `+median+`, 1e-08)`, "%.1e", "unknown")
	var e lines
	lanes := f.rows(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:ratio10m{$end})`, ends.end), "lane")
	e.add("Raw BER", listedByLane(lanes, "%.1e")+", over 10m at "+endName(ends.end)+
		" (limit 1e-08 and 100 times the median lane).")
	for _, netdev := range f.labels(withReceivePower, "netdev") {
		e.add("Receive power", listedByLane(f.receivePower(netdev), "%.1f dBm")+", transceiver in "+netdev+".")
	}
	e.add("Lanes", "the counter numbers them from 0, the transceiver (CMIS, SFF-8636) from 1.")
	e.add("Not evaluated", "eye opening and margins (registers of the vendor).")
	return Text{
		Summary: f.where() + ": one bad lane: lane " + lane + when(!own, " of the far end") + " receives " + ratio +
			" errors per bit before FEC over 10m (median lane " + f.text(median, "%.1e", "unknown") +
			", limit " + limit + "); FEC still corrects them",
		Description: "One lane of the link has far more bit errors before FEC than the other lanes. FEC corrects " +
			"them, and jobs are not affected. Lanes share age, temperature and dirt: a single bad lane is a failing " +
			"laser, driver or receiver, or dirt on one fibre.",
		Evidence: e,
		Measured: ratio,
		Limit:    limit,
		Diagnose: f.diagnoseBER(),
		Action: "Clean and reseat the cable at " + ends.rx + " at the next maintenance. If lane " + lane +
			" stays bad, swap the transceiver of " + ends.tx + ", then the cable, then the transceiver of " + ends.rx + ".",
		DrainReason: fecCorrects,
	}
}

// mostRisen has the measurement of the port whose bit errors rose most.
const mostRisen = ` and on (netdev, end) topk(1, port:rdma_link_raw_ber:baseline_factor{$port})`

func linkBERRising(f *Fault) Text {
	const risenAtEnd = `port:rdma_link_raw_ber:baseline_factor{$end} >= 10`
	factor, limit := whole(f.Value), "10"
	if f.has(`port:rdma_link_ber_rising:warning{$port}`) {
		limit = "100"
	}
	ends := f.linkEnds(f.has(atEnd(risenAtEnd, ownEnd)), f.has(atEnd(risenAtEnd, farEnd)))
	return Text{
		Summary: f.where() + ": bit errors are increasing: " +
			f.text(`max(port:rdma_link_raw_ber:ratio10m{$port}`+mostRisen+`)`, "%.1e", "unknown") +
			" errors per bit before FEC, " + factor + " times the " +
			f.text(`max(rdma_port_fec_ber_baseline{$port}`+mostRisen+`)`, "%.1e", "unknown") +
			" that is normal for this link (limit " + limit + " times for 1h); FEC still corrects them",
		Description: "The link has far more bit errors before FEC than when its transceiver was new here. FEC " +
			"corrects them, and jobs are not affected. The rate rises as a transceiver ages or a connector gets " +
			"dirty, until FEC cannot correct all.",
		Evidence: f.evidenceOfRise(),
		Measured: factor,
		Limit:    limit + " times",
		Diagnose: f.diagnoseBER(),
		Action: ends.repair("Both ends", " at the next maintenance", nil) +
			" After a repair that keeps the transceiver, run rdma_exporter accept " + f.pastedPort() +
			": the baseline begins anew.",
		DrainReason: fecCorrects,
	}
}

func (f *Fault) evidenceOfRise() (e lines) {
	for _, r := range f.rows(`max by (netdev, end) (port:rdma_link_raw_ber:ratio10m{$port})`, "end", "netdev") {
		end := r.Labels["end"]
		baseline := atEnd(`max(rdma_port_fec_ber_baseline{$end,netdev=`+strconv.Quote(r.Labels["netdev"])+`})`, end)
		e.add("Raw BER", fmt.Sprintf("%.1e over 10m at %s, baseline %s (limits 1e-07, and 10 times the baseline info, "+
			"100 times warning).", r.Value, endName(end), f.text(baseline, "%.1e", "unknown")))
	}
	for _, r := range f.rows(`min by (end) (rdma_port_fec_ber_baseline_start_timestamp_seconds{$port})`, "end") {
		e.add("Baseline", "began "+utc(r.Value)+" at "+endName(r.Labels["end"])+".")
	}
	e.add("Not evaluated", "errors within 17m of link-up, eye opening and margins (registers of the vendor).")
	return e
}

// addBER adds the bit error ratios that each end receives.
func (f *Fault) addBER(e *lines, limits bool) {
	for _, r := range f.rows(`max by (end) (port:rdma_link_raw_ber:ratio10m{$port})`, "end") {
		end, more := r.Labels["end"], ""
		if limits {
			more = " (limits " + f.text(atEnd(`max(port:rdma_link_raw_ber:warning_limit{$end})`, end), "%.1e", "unknown") +
				" info, " + f.text(atEnd(`max(port:rdma_link_raw_ber:error_limit{$end})`, end), "%.1e warning",
				"no warning for this kind of link") + ")"
		}
		lanes := f.rows(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:ratio10m{$end})`, end), "lane")
		more += when(len(lanes) > 0, ", by lane "+listed(lanes, "%.1e"))
		e.add("Raw BER", f.ratioOrFloor(r, `max(port:rdma_link_raw_ber:floor10m{$port})`)+
			" over 10m at "+endName(end)+more+".")
	}
	for _, r := range f.rows(`max by (end) (port:rdma_link_effective_ber:ratio1h{$port})`, "end") {
		end, more := r.Labels["end"], ""
		if limits {
			more = f.text(atEnd(`max(port:rdma_link_effective_ber:error_limit{$end})`, end), " (limits "+
				f.text(`0.5 * max(port:rdma_link_effective_ber:error_limit{$port})`, "%.1e", "")+" info, %.1e warning)", "")
		}
		e.add("Effective BER", f.ratioOrFloor(r, `max(port:rdma_link_effective_ber:floor1h{$port})`)+
			" over 1h at "+endName(end)+more+".")
	}
}

// ratioOrFloor is a bit error ratio; without an error it is below what the bits so far can show.
func (f *Fault) ratioOrFloor(r Sample, floor string) string {
	if r.Value > 0 {
		return fmt.Sprintf("%.1e", r.Value)
	}
	return "below " + f.text(floor, "%.0e", "")
}

// addUnreadEnds names the ends of the link that an expression has no result for.
func (f *Fault) addUnreadEnds(e *lines, expr, what string) {
	if !f.has(atEnd(expr, ownEnd)) {
		e.add("Not evaluated", what+" at this end (no counter, or saturated).")
	}
	if !f.has(atEnd(expr, farEnd)) {
		e.add("Not evaluated", what+" at the far end (not read, or saturated).")
	}
}

// badLanes are the lanes with far more errors than the others that an end receives.
func (f *Fault) badLanes(end string) []string {
	return f.labels(atEnd(`max by (lane) (port:rdma_link_lane_raw_ber:uneven{$end})`, end), "lane")
}

func (f *Fault) diagnoseBER() string {
	return f.ethtoolErrors("corrected|err_lane") + f.mlxlinkErrors()
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

// neighbour is the port at the far end of the link; false: unknown.
func (f *Fault) neighbour() (system, port string, ok bool) {
	rows := f.rows(`max by (system, port_id) (rdma_port_neighbour_info{$port})`, "system", "port_id")
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

func (f *Fault) linkEnds(own, far bool) linkEnds {
	here, there := f.hostPort(), "the far end"
	if system, port, ok := f.neighbour(); ok {
		there = portOf(pasted(system), pasted(port))
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
