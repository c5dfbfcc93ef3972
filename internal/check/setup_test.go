package check_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/snapshot/hostdata"
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
	a.Severity, a.Alert, a.Remedy, a.Basis, a.Evidence = "warning", "RDMAHostMisconfigured/acs", "setpci -s 1",
		hostdata.SetupMachine, "a GPU is below"
	b.Severity, b.Alert, b.Remedy, b.Basis, b.Evidence = "warning", "RDMAHostMisconfigured/acs", "setpci -s 2",
		hostdata.SetupMachine, "a GPU is below"
	c := row("aspm", "\x1b[31mx", "l1", "off", hostdata.SetupDiffers)
	d := row("mrrs", "mlx5_0", "", "4096", hostdata.SetupUnknown)
	d.Evidence = "needs CAP_SYS_ADMIN"
	return []hostdata.SetupRow{c, a, b, d, row("numa", "host", "0", "0", hostdata.SetupOK)}
}

// TestSetupTable: differences come first, the worst at the top, each with all its commands; unknown settings have their
// reason.
func TestSetupTable(t *testing.T) {
	const want = `gpu-1: warning: settings: 1 contradicts the traffic or a job, 1 differs from recommendations or siblings, 1 as wanted, 1 unknown

SEVERITY  SETTING  OBJECT  FOUND  WANTED  BASIS
warning   acs      all 2   on     off     this host
  why:      Slow.
  evidence: a GPU is below
  set:      setpci -s 1
            setpci -s 2
  source:   guide
info      aspm     □[31mx  l1     off     recommendation
  why:      Slow.
  source:   guide

UNKNOWN  OBJECT  WANTED  REASON
mrrs     mlx5_0  4096    needs CAP_SYS_ADMIN

AS WANTED  OBJECT  FOUND  BASIS
numa       host    0      recommendation
`
	s := check.NewSetup(setupRows(), nil, 0, false)
	s.Host = "gpu-1"
	var out bytes.Buffer
	if err := check.SetupTable(&out, s, setupRows(), check.Style{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
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
