package report

import (
	"strings"
	"testing"

	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/transceiver"
)

func TestBar(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	all := transceiver.Levels{HighAlarm: n(70), LowAlarm: n(0), HighWarning: n(60), LowWarning: n(10)}
	for _, c := range []struct {
		name    string
		reading *float64
		levels  transceiver.Levels
		want    string
	}{
		{"below low alarm", n(-40), all, "[o~~----------~~!]"},
		{"at low alarm", n(0), all, "[!o~----------~~!]"},
		{"in the middle", n(35), all, "[!~~-----o----~~!]"},
		{"below high alarm", n(69.9), all, "[!~~----------~o!]"},
		{"above high alarm", n(71), all, "[!~~----------~~o]"},
		{"far above high alarm", n(1e9), all, "[!~~----------~~o]"},
		{"alarms only", n(35), transceiver.Levels{HighAlarm: n(70), LowAlarm: n(0)}, "[!-------o------!]"},
		{"high alarm only", n(35), transceiver.Levels{HighAlarm: n(70)}, ""},
		{"no reading", nil, all, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := bar(c.reading, &c.levels); got != c.want {
				t.Errorf("%v: %s, want %s", c.reading, got, c.want)
			}
		})
	}
}

// TestCondition: the worst of what is wrong decides, lanes that are not in use say nothing, and a port without readings
// is not ok.
func TestCondition(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	used, unused := true, false
	lane := func(active *bool, rx float64) transceiver.Lane {
		return transceiver.Lane{Number: 1, Active: active, RxPower: n(rx), TxPower: n(1)}
	}
	module := func(lanes ...transceiver.Lane) *transceiver.Module { return &transceiver.Module{Lanes: lanes} }
	hot := passed{"temperature", 0, "high_alarm"}
	for _, c := range []struct {
		row  opticsRow
		want string
	}{
		{opticsRow{State: "present", Module: module(lane(&used, 0))}, "ok"},
		{opticsRow{State: "present", Module: module(lane(&unused, -40))}, "ok"},
		{opticsRow{State: "present", Module: module(lane(&used, -40))}, "dark lane 1 receives no light"},
		{opticsRow{State: "present", Module: module(lane(nil, -40)), Active: true}, "dark lane 1 receives no light"},
		{opticsRow{State: "present", Module: module(lane(nil, -40))}, "ok"},
		{
			opticsRow{State: "present", Module: module(lane(&used, -40)), Passed: []passed{{"receive_power", 1, "low_alarm"}, hot}},
			"dark lane 1 receives no light; temperature: HIGH ALARM",
		},
		{opticsRow{State: "present", Module: module(), Passed: []passed{hot}}, "alarm temperature: HIGH ALARM"},
		{opticsRow{State: "present", Module: module(), Passed: []passed{{"bias", 2, "low_warning"}}}, "warning lane 2 bias: LOW WARNING"},
		{opticsRow{State: "unreadable", Module: module(), Why: "read failed"}, "fault read failed"},
		{opticsRow{State: "unreadable", Why: "read failed"}, "fault read failed"},
		{opticsRow{State: "busy", Why: "busy"}, "not read"},
		{opticsRow{State: "unsupported", Why: "no"}, "not read"},
		{opticsRow{State: "absent", Why: "cage is empty"}, "empty"},
	} {
		state, faults := c.row.condition()
		if got := strings.TrimSpace(state + " " + strings.Join(faults, "; ")); got != c.want {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

// TestSummaryWidth: at 80 columns and more each line fits; the worst module is first, with its fault at any width.
func TestSummaryWidth(t *testing.T) {
	n := func(v float64) *float64 { return &v }
	levels := transceiver.Levels{HighAlarm: n(75), LowAlarm: n(0)}
	row := func(name string, celsius float64, p ...passed) opticsRow {
		m := &transceiver.Module{
			PartNumber: "MMS4X00-NM", SerialNumber: "MT2238FT00123", Vendor: "交换机", FormFactor: "OSFP",
			Temperature: &celsius, Thresholds: transceiver.Thresholds{Temperature: levels},
		}
		return opticsRow{Device: name, Port: 1, Netdev: "enp24s0np0", State: "present", Passed: p, Module: m}
	}
	rows := []opticsRow{row("mlx5_0", 50), row("mlx5_1", 80, passed{"temperature", 0, "high_alarm"})}
	for _, width := range []int{0, 1, 20, 80, 200} {
		var b strings.Builder
		if err := printSummary(&b, rows, terminal.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		if !strings.HasPrefix(lines[1], "alarm  mlx5_1/1") || !strings.Contains(b.String(), "temperature: HIGH") ||
			strings.Contains(b.String(), "MT2238FT00123") != (width == 0 || width == 200) {
			t.Errorf("%d:\n%s", width, &b)
		}
		for _, line := range lines {
			if w := terminal.Width(line); width >= 80 && w > width {
				t.Errorf("%d: %d columns: %s", width, w, line)
			}
		}
	}
}
