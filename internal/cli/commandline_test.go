package cli

import (
	"strings"
	"testing"

	"rdma_exporter/internal/command"
)

// TestCommandLineErrors: an error of a command line names the flag or argument, and the help that applies.
func TestCommandLineErrors(t *testing.T) {
	for args, want := range map[string]string{
		"check --foo=1":                "rdma_exporter check: unknown flag --foo (did you mean --for?); see rdma_exporter check --help",
		"check --jsn":                  "rdma_exporter check: unknown flag --jsn (did you mean --json?); see rdma_exporter check --help",
		"check -severity=critical":     "rdma_exporter check: unknown flag -severity (did you mean --severity?); see rdma_exporter check --help",
		"check -x":                     "rdma_exporter check: unknown flag -x; see rdma_exporter check --help",
		"optics --verbose":             "rdma_exporter optics: --verbose is a flag of check; see rdma_exporter optics --help",
		"--severity=critical check":    "rdma_exporter: --severity is a flag of check and must follow that command; see rdma_exporter --help",
		"--web.listen-adress=:1":       "rdma_exporter: unknown flag --web.listen-adress (did you mean --web.listen-address?); see rdma_exporter --help",
		"check --severity":             "rdma_exporter check: --severity: value missing; see rdma_exporter check --help",
		"check --severity --json":      "rdma_exporter check: --severity: value missing; see rdma_exporter check --help",
		"--state.dir --replay=demo":    "rdma_exporter: --state.dir: value missing; see rdma_exporter --help",
		"capture -o":                   "rdma_exporter capture: -o: value missing; see rdma_exporter capture --help",
		"check --severity=bad":         "rdma_exporter check: --severity=bad: must be one of critical, warning, info; see rdma_exporter check --help",
		"check --timeout=5":            "rdma_exporter check: --timeout=5: must be a duration such as 30s or 5m; see rdma_exporter check --help",
		"check --timeout=0s":           "rdma_exporter check: --timeout=0s: must be greater than 0",
		"--replay=demo --state.dir":    "rdma_exporter: --state.dir: value missing; see rdma_exporter --help",
		"check --no-severity":          "rdma_exporter check: unknown flag --no-severity (did you mean --severity?); see rdma_exporter check --help",
		"--collector.gpu.mode=all":     "rdma_exporter: --collector.gpu.mode=all: must be one of fabric, full; see rdma_exporter --help",
		"rules --set=none":             "rdma_exporter rules: --set=none: must be one of node, central, leaf, global, compat; see rdma_exporter rules --help",
		"expect list --js":             "rdma_exporter expect list: unknown flag --js (did you mean --json?); see rdma_exporter expect list --help",
		"check --daemon-timeout":       "rdma_exporter check: --daemon-timeout: value missing; see rdma_exporter check --help",
		"check --log.level=loud":       "rdma_exporter check: --log.level=loud: must be one of debug, info, warn, error; see rdma_exporter check --help",
		"--runtime.gomaxprocs=x":       "rdma_exporter: --runtime.gomaxprocs=x: must be a number; see rdma_exporter --help",
		"check --json --json":          "rdma_exporter check: --json: given more than once; see rdma_exporter check --help",
		"check --device.include=(":     "rdma_exporter check: --device.include=(: error parsing regexp: missing closing ): `(`",
		"capture":                      "rdma_exporter capture: --output=FILE is required; see rdma_exporter capture --help",
		"check-config":                 "rdma_exporter check-config: FILE is required; see rdma_exporter check-config --help",
		"chek":                         "rdma_exporter: unknown command chek (did you mean check?); see rdma_exporter --help",
		"help chek":                    "rdma_exporter: unknown command chek (did you mean check?); see rdma_exporter --help",
		"expect lst":                   "rdma_exporter expect: unknown command expect lst (did you mean expect list?); see rdma_exporter expect --help",
		"expect":                       "rdma_exporter expect: subcommand missing: expect list; see rdma_exporter expect --help",
		"check topo":                   "rdma_exporter check: unexpected argument topo; see rdma_exporter check --help",
		"check mlx5_0":                 "rdma_exporter check: unexpected argument mlx5_0; see rdma_exporter check --help",
		"check --config.file=/nowhere": "rdma_exporter check: --config.file=/nowhere: no such file or directory",
	} {
		code, out, errs := runProgram(t, strings.Fields(args)...)
		wantCode := command.UsageError
		if strings.Contains(" "+args+" ", " check ") {
			wantCode = 3
		}
		if code != wantCode || out != "" || errs != want+"\n" {
			t.Errorf("%s: exit %d, %s%s, want %d, %s", args, code, out, errs, wantCode, want)
		}
	}
}

// TestHelpOfServe: --help lists the flags of the command that runs by default.
func TestHelpOfServe(t *testing.T) {
	_, out, _ := runProgram(t, "--help")
	for _, want := range []string{
		"\nFlags of serve, which runs if no command is given:\n", "--web.listen-address=:10879",
		"\nFlags of another command: rdma_exporter <command> --help\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if code, out, _ := runProgram(t, "help", "maintenance", "start"); code != command.OK ||
		!strings.HasPrefix(out, "usage: rdma_exporter maintenance start --for=DURATION [<flags>]\n") {
		t.Errorf("exit %d, %s", code, out)
	}
}
