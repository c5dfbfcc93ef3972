package main

import (
	"fmt"
	"regexp"
	"strings"
)

// Label sets that series are aggregated to. cluster is an external label that there may be; without it, it does no
// harm.
const (
	perHost   = "cluster, job, instance"
	perDevice = perHost + ", device"
	perPort   = perDevice + ", port"
	perNetdev = perPort + ", netdev"
	perLane   = perNetdev + ", lane"
	perGPU    = perHost + ", gpu, UUID"
	perAlert  = perHost + ", alertname, drain, device, where, reason, alertstate"
)

// Legends of one series each.
const (
	hostName = "{{host}}"
	portName = hostName + " {{device}}/{{port}}"
	gpuName  = hostName + " GPU {{gpu}}"
)

// scope are the matchers that stand for what is chosen at the top of a dashboard.
type scope string

const (
	hosts    scope = `cluster=~"$cluster",job=~"$job",instance=~"$hosts"`
	devices  scope = hosts + `,device=~"$device"`
	host     scope = `cluster=~"$cluster",job=~"$job",instance="$host"`
	device   scope = host + `,device=~"$device"`
	fabrics  scope = `cluster=~"$cluster",job=~"$fabric_job"`
	fabricOf scope = fabrics + `,instance="$fabric"`
)

// of selects a metric, with more matchers.
func (s scope) of(metric string, more ...string) string {
	return metric + "{" + strings.Join(append([]string{string(s)}, more...), ",") + "}"
}

// rate returns a counter's rate. $__rate_interval is four scrapes or more, whatever the interval.
func (s scope) rate(metric string, more ...string) string {
	return "rate(" + s.of(metric, more...) + "[$__rate_interval])"
}

// increase is by how much a counter rose from one point of a graph to the next, or a little more.
func (s scope) increase(metric string, more ...string) string {
	return "increase(" + s.of(metric, more...) + "[$__rate_interval])"
}

func maxBy(labels, expr string) string   { return "max by (" + labels + ") (" + expr + ")" }
func minBy(labels, expr string) string   { return "min by (" + labels + ") (" + expr + ")" }
func sumBy(labels, expr string) string   { return "sum by (" + labels + ") (" + expr + ")" }
func countBy(labels, expr string) string { return "count by (" + labels + ") (" + expr + ")" }

// top and bottom keep n series of a table.
func top(n int, expr string) string    { return fmt.Sprintf("topk(%d, %s)", n, expr) }
func bottom(n int, expr string) string { return fmt.Sprintf("bottomk(%d, %s)", n, expr) }

// ranked draws the n series of a graph that are the highest (op topk) or lowest (bottomk) over the whole range: topk at
// each point would gather more and more of a fleet. Counters are ranked by their rate over the range, gauges by their
// last value.
func ranked(op string, n int, labels, expr string) string {
	return fmt.Sprintf("(%s) and on (%s) %s(%d, %s)", expr, labels, op, n, overRange(expr))
}

func highest(n int, labels, expr string) string { return ranked("topk", n, labels, expr) }

// above draws those of the highest that exceed least over the range, whole lines of them.
func above(least string, n int, labels, expr string) string {
	return fmt.Sprintf("(%s) and on (%s) topk(%d, (%s) > %s)", expr, labels, n, overRange(expr), least)
}
func lowest(n int, labels, expr string) string { return ranked("bottomk", n, labels, expr) }

// selector ends every selector of a scope.
var selector = regexp.MustCompile(`"\}(\[\$__rate_interval\]|\[\$__range\] @ end\(\))?`)

// overRange returns an expression over the whole range, at its end.
func overRange(expr string) string {
	return selector.ReplaceAllStringFunc(expr, func(end string) string {
		if end == `"}` {
			return end + " @ end()"
		}
		if strings.HasSuffix(end, "@ end()") {
			return end
		}
		return `"}[$__range] @ end()`
	})
}

// atMostAll limits a share to 100 %: rates are extrapolated, and durations are counted in steps.
func atMostAll(expr string) string { return "clamp_max(" + expr + ", 1)" }

// orZero counts, and is 0 only where there is something to count: no data is not 0.
func orZero(expr, there string) string { return "count(" + expr + ") or 0 * count(" + there + ")" }

// orUnknown is -1 where there is nothing to count or to say: a query without a result has no place among several in one
// panel.
func orUnknown(expr string) string { return expr + " or on () vector(-1)" }

// orNone adds a row that says of how many there is none, where there is no other and something was measured: text has
// the number as $1.
func orNone(expr, label, text, all string) string {
	return fmt.Sprintf(`%s or on () 0 * label_replace(count_values(%[2]q, count(%s)), %[2]q, %[4]q, %[2]q, "(.*)")`,
		expr, label, all, text)
}

// withHost adds the host name of each target as the label host: instance has the port of the exporter, too.
func withHost(expr string) string {
	return fmt.Sprintf(`label_replace(%s, "host", "$1", "instance", "(.+?)(:[0-9]+)?")`, expr)
}

// labelled sets a label of all series of an expression.
func labelled(label, value, expr string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expr, label, value)
}

// labelledBy sets a label to the value of another where that is not empty.
func labelledBy(label, from, expr string) string {
	return fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expr, label, from)
}

// sumOf adds up the rates of several counters, of which drivers have some.
func (s scope) sumOf(labels string, counters ...string) string {
	var parts []string
	for _, c := range counters {
		parts = append(parts, labelled("counter", c, sumBy(labels, s.rate(c))))
	}
	return sumBy(labels, strings.Join(parts, " or "))
}

// risen adds up by how much counters rose in the range that is shown, for a table.
func (s scope) risen(counters ...string) string {
	var parts []string
	for _, c := range counters {
		parts = append(parts, labelled("counter", c, "increase("+s.of(c)+"[$__range])"))
	}
	return strings.Join(parts, " or ")
}

// retransmissions are the counters that say that something was sent again, as RDMARetransmissions adds them up.
var retransmissions = []string{
	"rdma_port_packet_sequence_errors_total", "rdma_port_implied_nak_errors_total",
	"rdma_port_ack_timeouts_total", "rdma_port_adaptive_retransmissions_total",
}

// perMillion returns a rate by the million packets of another. Below 1000 packets a second a share says nothing.
func perMillion(labels, expr, packets string) string {
	return fmt.Sprintf("1e6 * %s / (%s > 1000)", expr, sumBy(labels, packets))
}

// alerts returns a selector for the alerts of the product, without the watchdog, which always fires.
func (s scope) alerts(more ...string) string {
	return s.of("ALERTS", append([]string{`alertname=~"RDMA.+",alertname!="RDMAWatchdog"`}, more...)...)
}

// firing returns the alerts of some severities.
func (s scope) firing(levels string, topic ...string) string {
	return s.alerts(append([]string{`alertstate="firing"`, `severity=~"` + levels + `"`}, topic...)...)
}

// began returns the alerts that fire and did not a minute before: a point in time, and no time that graphs would be
// filled with.
func (s scope) began(levels string, topic ...string) string {
	alerts := s.firing(levels, topic...)
	return alerts + " unless " + alerts + " offset 1m"
}
