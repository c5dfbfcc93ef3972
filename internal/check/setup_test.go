package check_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/terminal"
)

func setupRows() []hostdata.SetupRow {
	row := func(setting, object, found, wanted string, state hostdata.SetupState) hostdata.SetupRow {
		return hostdata.SetupRow{
			Domain: "pcie", Setting: setting, Name: setting, Object: object, Found: found, Wanted: wanted, State: state,
			Severity: "info", Basis: hostdata.SetupGuide, Why: "Slow.", Source: "guide",
		}
	}
	a, b := row("acs", "mlx5_0", "on", "off", hostdata.SetupDiffers),
		row("acs", "mlx5_1", "on", "off", hostdata.SetupDiffers)
	a.Severity, a.Alert, a.Basis, a.Evidence = "warning", "RDMAHostMisconfigured/acs", hostdata.SetupMachine,
		"a GPU is below"
	a.Remedy = "setpci -s 0000:18:00.0 E=0"
	b.Severity, b.Alert, b.Basis, b.Evidence = a.Severity, a.Alert, a.Basis, a.Evidence
	b.Remedy = "setpci -s 0000:3f:00.0 E=0"
	c := row("aspm", "\x1b[31mx", "l1", "off", hostdata.SetupDiffers)
	d := row("mrrs", "mlx5_0", "", "4096", hostdata.SetupUnknown)
	d.Evidence = "needs CAP_SYS_ADMIN"
	return []hostdata.SetupRow{c, a, b, d, row("numa", "host", "0", "0", hostdata.SetupOK)}
}

// TestSetupTable: differences come first, the worst at the top, each with all its commands; unknown settings have their
// reason.
func TestSetupTable(t *testing.T) {
	const head = "gpu-1: warning: settings: 1 contradicts the traffic or a job, 1 differs from recommendations or " +
		"siblings, 1 as wanted, 1 unknown\n"
	const verbose = `
warning   acs, all 2: on, wanted off (this host)
why:      Slow.
evidence: a GPU is below
set:      for d in 0000:18:00.0 0000:3f:00.0; do setpci -s $d E=0; done
source:   guide

info      aspm, □[31mx: l1, wanted off (recommendation)
why:      Slow.
source:   guide

unknown   mrrs, mlx5_0: wanted 4096, needs CAP_SYS_ADMIN

ok        numa, host: 0 (recommendation)
`
	const brief = `
warning   acs, all 2: on, wanted off (this host)
why:      Slow.
evidence: a GPU is below
set:      for d in 0000:18:00.0 0000:3f:00.0; do setpci -s $d E=0; done

info      aspm, □[31mx: l1, wanted off (recommendation)

unknown   mrrs, mlx5_0: wanted 4096, needs CAP_SYS_ADMIN
`
	const short = `
warning   acs, all 2: on, wanted off (this host)
info      aspm, □[31mx: l1, wanted off (recommendation)

unknown   mrrs, mlx5_0: wanted 4096, needs CAP_SYS_ADMIN
`
	s := check.NewSetup(setupRows(), nil, 0, false)
	s.Host = "gpu-1"
	for _, c := range []struct {
		style check.Style
		want  string
	}{
		{check.Style{Verbose: true}, head + verbose}, {check.Style{}, head + brief}, {check.Style{Short: true}, head + short},
	} {
		var out bytes.Buffer
		if err := check.SetupTable(&out, s, setupRows(), c.style); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s\nwant\n%s", out.String(), c.want)
		}
	}
	var narrow bytes.Buffer
	style := check.Style{Style: terminal.Style{Width: 80, Colour: true}}
	if err := check.SetupTable(&narrow, s, setupRows(), style); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(escape.ReplaceAllString(narrow.String(), "")) {
		if n := terminal.Width(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.HasPrefix(narrow.String(), "gpu-1: \x1b[33mwarning\x1b[0m: ") {
		t.Errorf("%q", narrow.String())
	}
}

// TestSetupVerdict: info is ok, a contradiction is a warning, a report without settings is unknown, and with --strict
// also one with an unknown setting.
func TestSetupVerdict(t *testing.T) {
	rows := setupRows()
	unknown := []account.Object{{Kind: account.Port, Name: "mlx5_0/1", Class: account.Unknown, Compute: true}}
	for name, k := range map[string]struct {
		rows    []hostdata.SetupRow
		objects []account.Object
		virtual int
		strict  bool
		want    string
		code    int
	}{
		"none":                    {nil, nil, 0, false, "unknown", check.ExitUnknown},
		"virtual functions only":  {nil, nil, 2, true, "ok", check.ExitOK},
		"info":                    {rows[:1], nil, 0, false, "ok", check.ExitOK},
		"contradiction":           {rows, nil, 0, true, "warning", check.ExitWarning},
		"unknown":                 {rows[3:], nil, 0, false, "ok", check.ExitOK},
		"unknown, with strict":    {rows[3:], nil, 0, true, "unknown", check.ExitUnknown},
		"all known, and strict":   {rows[4:], nil, 0, true, "ok", check.ExitOK},
		"a port unknown":          {rows[4:], unknown, 0, false, "unknown", check.ExitUnknown},
		"a port unknown, warning": {rows, unknown, 0, false, "warning", check.ExitWarning},
	} {
		t.Run(name, func(t *testing.T) {
			s := check.NewSetup(k.rows, k.objects, k.virtual, k.strict)
			if s.Verdict != k.want || s.ExitCode != k.code {
				t.Errorf("%s, exit code %d", s.Verdict, s.ExitCode)
			}
			var out bytes.Buffer
			if err := check.SetupJSON(&out, s); err != nil {
				t.Fatal(err)
			}
			var back check.Setup
			if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Settings) != len(k.rows) {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}
