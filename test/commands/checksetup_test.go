package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/test/machines"
)

// TestCheckSetup: the settings of a recorded machine, with those that a site wants; a host without RDMA devices is
// unknown.
func TestCheckSetup(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "site.yml")
	must(t,
		os.WriteFile(conf, []byte("setup:\n- match: {hostname: \"*\"}\n  want: {max_read_request: 512, acs: any}\n"), 0o600))
	for name, k := range map[string]struct {
		args []string
		code int
		want string // a part of the output
		not  string
	}{
		"by the book":   {[]string{"--replay", machines.Fixture("dgx-h100-ib")}, check.ExitOK, "ok: settings: ", "differ"},
		"site":          {[]string{"--replay", machines.Fixture("dgx-h100-ib"), "--config.file", conf}, check.ExitOK, "site configuration", "acs"},
		"json":          {[]string{"--replay", machines.Fixture("dgx-h100-ib"), "--json"}, check.ExitOK, `"setting": "max_read_request"`, ""},
		"no device":     {[]string{"--replay", machines.Fixture("no-rdma")}, check.ExitUnknown, "unknown: no RDMA device", ""},
		"with --drain":  {[]string{"--replay", machines.Fixture("dgx-h100-ib"), "--drain"}, check.ExitUnknown, "--setup: can be combined with", ""},
		"acs redirects": {[]string{"--replay", machines.Fixture("acs-on")}, check.ExitWarning, "acs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runProgram(t, append([]string{"check", "--setup"}, k.args...)...)
			if text := out + errs; code != k.code || !strings.Contains(text, k.want) ||
				k.not != "" && strings.Contains(text, k.not) {
				t.Errorf("exit code %d, want %d\n%s", code, k.code, text)
			}
		})
	}
}
