package switches_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"rdma_exporter/internal/alerting/switches"
)

// TestSwitches: counters of an SNMP exporter by port, and of a gNMI exporter by queue.
func TestSwitches(t *testing.T) {
	text, err := switches.Rules([]byte(`
pfc_received: {expr: ieee8021PfcIndications, switch: sysName, port: ifName}
discards:
  expr: |
    qos_queue_dropped_pkts # of all
      {source!=""}
  switch: source
  port: interface_id
  priority: queue_name
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []rulefmt.Rule{
		{Record: "switch:rdma_switch_discards:total", Expr: `max by (cluster, switch, switch_port, priority) (label_replace(label_replace(label_replace(qos_queue_dropped_pkts{source!=""}, "switch", "$1", "source", "(.*)"), "switch_port", "$1", "interface_id", "(.*)"), "priority", "$1", "queue_name", "[^0-9]*([0-7])[^0-9]*"))`},
		{Record: "switch:rdma_switch_pfc_received:total", Expr: `max by (cluster, switch, switch_port) (label_replace(label_replace(ieee8021PfcIndications, "switch", "$1", "sysName", "(.*)"), "switch_port", "$1", "ifName", "(.*)"))`},
	}
	p, log := parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler)
	parsed, errs := rulefmt.Parse(text, false, model.LegacyValidation, p, log)
	if len(errs) > 0 || len(parsed.Groups) != 1 || len(parsed.Groups[0].Rules) != len(want) {
		t.Fatalf("%s: %v", text, errs)
	}
	got := parsed.Groups[0].Rules
	for i, w := range want {
		if got[i].Record != w.Record || strings.TrimSpace(got[i].Expr) != w.Expr {
			t.Errorf("%+v, want %+v", got[i], w)
		}
	}
}

// TestSwitchesWrong: one error that names the key and what is wrong with it.
func TestSwitchesWrong(t *testing.T) {
	for _, c := range []struct{ mapping, want string }{
		{"pauses: {expr: a, switch: b, port: c}", `"pauses" is no counter of switches: one of discards, ecn_marked,`},
		{"discards: {expr: a, switch: b}", `discards: port: "" is no name of a label`},
		{"discards: {expr: a, switch: 'b\", \"', port: c}", `discards: switch: "b\", \"" is no name of a label`},
		{"discards: {expr: 'a{', switch: b, port: c}", `discards: expr "a{": 1:3: parse error`},
		{"discards: {expr: 'a[5m]', switch: b, port: c}", `discards: expr "a[5m]": a matrix`},
		{"discards: {expr: '1', switch: b, port: c}", `discards: expr "1": a scalar`},
		{"discards: {expr: a, switch: b, port: c, cos: d}", "field cos not found"},
		{"- a", "cannot unmarshal"},
		{"", "EOF"},
	} {
		if _, err := switches.Rules([]byte(c.mapping)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.mapping, err, c.want)
		}
	}
}
