// Package promql writes the expressions of dashboards: selectors of what is chosen at the top, label sets, rankings,
// and counts that distinguish none from unknown.
package promql

import (
	"fmt"
	"regexp"
	"strings"
)

// Label sets that series are aggregated to. cluster is an external label that there may be; without it, it does no
// harm.
const (
	PerHost   = "cluster, job, instance"
	PerDevice = PerHost + ", device"
	PerPort   = PerDevice + ", port"
	PerNetdev = PerPort + ", netdev"
	PerLane   = PerNetdev + ", lane"
	PerGPU    = PerHost + ", gpu, UUID"
	PerAlert  = PerHost + ", alertname, drain, device, where, reason, alertstate"
)

// Legends of one series each.
const (
	HostName = "{{host}}"
	PortName = HostName + " {{device}}/{{port}}"
	GPUName  = HostName + " GPU {{gpu}}"
)

// Scope are the matchers that stand for what is chosen at the top of a dashboard.
type Scope string

const (
	Hosts    Scope = `cluster=~"$cluster",job=~"$job",instance=~"$hosts"`
	Devices  Scope = Hosts + `,device=~"$device"`
	Host     Scope = `cluster=~"$cluster",job=~"$job",instance="$host"`
	Device   Scope = Host + `,device=~"$device"`
	Fabrics  Scope = `cluster=~"$cluster",job=~"$fabric_job"`
	FabricOf Scope = Fabrics + `,instance="$fabric"`
)

// Of selects a metric, with more matchers.
func (s Scope) Of(metric string, more ...string) string {
	return metric + "{" + strings.Join(append([]string{string(s)}, more...), ",") + "}"
}

// Rate returns a counter's rate. $__rate_interval is four scrapes or more, whatever the interval.
func (s Scope) Rate(metric string, more ...string) string {
	return "rate(" + s.Of(metric, more...) + "[$__rate_interval])"
}

// Increase is by how much a counter rose from one point of a graph to the next, or a little more.
func (s Scope) Increase(metric string, more ...string) string {
	return "increase(" + s.Of(metric, more...) + "[$__rate_interval])"
}

func MaxBy(labels, expr string) string { return "max by (" + labels + ") (" + expr + ")" }

func MinBy(labels, expr string) string { return "min by (" + labels + ") (" + expr + ")" }

func SumBy(labels, expr string) string { return "sum by (" + labels + ") (" + expr + ")" }

func CountBy(labels, expr string) string { return "count by (" + labels + ") (" + expr + ")" }

// Top and Bottom keep n series of a table.
func Top(n int, expr string) string { return fmt.Sprintf("topk(%d, %s)", n, expr) }

func Bottom(n int, expr string) string { return fmt.Sprintf("bottomk(%d, %s)", n, expr) }

// ranked draws the n series of a graph that are the highest (op topk) or lowest (bottomk) over the whole range: topk at
// each point would gather more and more of a fleet. Counters are ranked by their rate over the range, gauges by their
// last value.
func ranked(op string, n int, labels, expr string) string {
	return fmt.Sprintf("(%s) and on (%s) %s(%d, %s)", expr, labels, op, n, OverRange(expr))
}

func Highest(n int, labels, expr string) string { return ranked("topk", n, labels, expr) }

// Above draws those of the highest that exceed least over the range, whole lines of them.
func Above(least string, n int, labels, expr string) string {
	return fmt.Sprintf("(%s) and on (%s) topk(%d, (%s) > %s)", expr, labels, n, OverRange(expr), least)
}

func Lowest(n int, labels, expr string) string { return ranked("bottomk", n, labels, expr) }

// selector ends every selector of a scope.
var selector = regexp.MustCompile(`"\}(\[\$__rate_interval\]|\[\$__range\] @ end\(\))?`)

// OverRange returns an expression over the whole range, at its end.
func OverRange(expr string) string {
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

// AtMostAll limits a share to 100 %: rates are extrapolated, and durations are counted in steps.
func AtMostAll(expr string) string { return "clamp_max(" + expr + ", 1)" }

// OrZero counts, and is 0 only where there is something to count: no data is not 0.
func OrZero(expr, there string) string { return "count(" + expr + ") or 0 * count(" + there + ")" }

// OrUnknown is -1 where there is nothing to count or to say: a query without a result has no place among several in one
// panel.
func OrUnknown(expr string) string { return expr + " or on () vector(-1)" }

// OrNone adds a row that says of how many there is none, where there is no other and something was measured: text has
// the number as $1.
func OrNone(expr, label, text, all string) string {
	return fmt.Sprintf(`%s or on () 0 * label_replace(count_values(%[2]q, count(%s)), %[2]q, %[4]q, %[2]q, "(.*)")`,
		expr, label, all, text)
}

// WithHost adds the host name of each target as the label host: instance has the port of the exporter, too.
func WithHost(expr string) string {
	return fmt.Sprintf(`label_replace(%s, "host", "$1", "instance", "(.+?)(:[0-9]+)?")`, expr)
}

// Labelled sets a label of all series of an expression.
func Labelled(label, value, expr string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expr, label, value)
}

// LabelledBy sets a label to the value of another where that is not empty.
func LabelledBy(label, from, expr string) string {
	return fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expr, label, from)
}

// SumOf adds up the rates of several counters, of which drivers have some.
func (s Scope) SumOf(labels string, counters ...string) string {
	var parts []string
	for _, c := range counters {
		parts = append(parts, Labelled("counter", c, SumBy(labels, s.Rate(c))))
	}
	return SumBy(labels, strings.Join(parts, " or "))
}

// Risen adds up by how much counters rose in the range that is shown, for a table.
func (s Scope) Risen(counters ...string) string {
	var parts []string
	for _, c := range counters {
		parts = append(parts, Labelled("counter", c, "increase("+s.Of(c)+"[$__range])"))
	}
	return strings.Join(parts, " or ")
}

// Retransmissions are the counters that say that something was sent again, as RDMARetransmissions adds them up.
var Retransmissions = []string{
	"rdma_port_packet_sequence_errors_total", "rdma_port_implied_nak_errors_total",
	"rdma_port_ack_timeouts_total", "rdma_port_adaptive_retransmissions_total",
}

// PerMillion returns a rate by the million packets of another. Below 1000 packets a second a share says nothing.
func PerMillion(labels, expr, packets string) string {
	return fmt.Sprintf("1e6 * %s / (%s > 1000)", expr, SumBy(labels, packets))
}

// Alerts returns a selector for the alerts of the product, without the watchdog, which always fires.
func (s Scope) Alerts(more ...string) string {
	return s.Of("ALERTS", append([]string{`alertname=~"RDMA.+",alertname!="RDMAWatchdog"`}, more...)...)
}

// Firing returns the alerts of some severities.
func (s Scope) Firing(levels string, topic ...string) string {
	return s.Alerts(append([]string{`alertstate="firing"`, `severity=~"` + levels + `"`}, topic...)...)
}

// Began returns the alerts that fire and did not a minute before: a point in time, and no time that graphs would be
// filled with.
func (s Scope) Began(levels string, topic ...string) string {
	alerts := s.Firing(levels, topic...)
	return alerts + " unless " + alerts + " offset 1m"
}

// Short names a port of the chosen host.
const Short = "{{device}}/{{port}}"

// Evaluated are the hosts that the rules are evaluated on.
func (s Scope) Evaluated() string { return s.Of("ALERTS", `alertname="RDMAWatchdog"`) }
