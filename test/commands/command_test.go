// Package commands_test runs the commands on recorded machines, to their end.
package commands_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/test/machines"
)

// runProgram runs the program to its end.
func runProgram(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = cli.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// errorLine begins the errors of commands.
var errorLine = regexp.MustCompile(`^rdma_exporter( [a-z-]+)*: `)

// TestBadInput: one line that names the flag or file, exit code 2 (3 for check, whose 2 is a critical finding), nothing
// written.
func TestBadInput(t *testing.T) {
	dir, quick := t.TempDir(), "--replay="+machines.Fixture("no-rdma")
	broken := filepath.Join(dir, "broken.txtar")
	must(t, os.WriteFile(broken, []byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n-- ../../etc/passwd --\nx\n"), 0o644))
	newer := filepath.Join(dir, "newer.txtar")
	must(t, os.WriteFile(newer, []byte("-- capture.json --\n{\"version\":3,\"rounds\":[\"0s\"]}\n"), 0o644))
	web := filepath.Join(dir, "web.yml")
	must(t, os.WriteFile(web, []byte("tls_server_config: {cert_fil: x}\n"), 0o644))
	badConfig := filepath.Join(dir, "config.txtar")
	must(t, os.WriteFile(badConfig, []byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\"]}\n-- exporter/config.yml --\nx\n"), 0o644))
	badRules := filepath.Join(dir, "bad.rules.yml")
	must(t, os.WriteFile(badRules, []byte("groups: [{name: g, rules: [{alert: A, expr: 'up{'}]}]\n"), 0o644))
	before, err := os.ReadDir(dir)
	must(t, err)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nope"}, "--nope"},
		{[]string{"nope"}, "nope"},
		{[]string{"--collector.nope"}, "--collector.nope"},
		{[]string{"--path.rootfs=" + dir + "/nope"}, "--path.rootfs: open " + dir + "/nope: no such file or directory"},
		{[]string{"--path.sysfs=" + broken}, "--path.sysfs: "},
		{[]string{"--replay=" + dir + "/nope", "check"}, "nope: no such file or directory"},
		{[]string{"--replay=" + dir, "check"}, "regular file"},
		{[]string{"--replay=" + broken}, `"../../etc/passwd"`},
		{[]string{"--replay=" + newer, "check"}, "version 3"},
		{[]string{"--replay=" + web, "capture", "-o", "-"}, "not a capture"},
		{[]string{"--config.file=" + dir + "/nope", "check"}, dir + "/nope: no such file or directory"},
		{[]string{"--config.file=" + dir, quick, "check"}, dir + ": must be a regular file"},
		{[]string{"--config.file=" + web, quick, "check"}, web + `:1: the file: unknown key "tls_server_config", known keys: cabling, ignore, peers, pins`},
		{[]string{"--config.file=" + web, quick, "capture", "-o", dir + "/x"}, web + ":1: "},
		{[]string{"--config.file=" + web}, web + ":1: "},
		{[]string{"--config.file=" + web, "fabric"}, web + ":1: "},
		{[]string{"--replay=" + badConfig, "check"}, badConfig + ": exporter/config.yml:1: the file: "},
		{[]string{"check-config"}, "FILE"},
		{[]string{"healthy", "--url=localhost"}, "--url=localhost: must be http://HOST:PORT"},
		{[]string{"healthy", "--timeout=0s"}, "--timeout=0s: "},
		{[]string{"--device.include=("}, "--device.include"},
		{[]string{"--device.exclude=("}, "--device.exclude"},
		{[]string{"--collect.timeout=0s"}, "--collect.timeout"},
		{[]string{"--collect.min-interval=-1s"}, "--collect.min-interval"},
		{[]string{"--pfc.sample-interval=100ms"}, "--pfc.sample-interval"},
		{[]string{"--transceiver.interval=1s"}, "--transceiver.interval"},
		{[]string{quick, "--alerting.interval=0s"}, "--alerting.interval"},
		{[]string{quick, "--alerting.interval=5m"}, "--alerting.interval"},
		{[]string{quick, "--alerting.job="}, "--alerting.job"},
		{[]string{quick, "--alerting.external-labels=a-b=c"}, "--alerting.external-labels: a-b=c"},
		{[]string{quick, "--alerting.external-labels=a=b", "--alerting.external-labels=a=c"}, "--alerting.external-labels: a=c: duplicate label"},
		{[]string{quick, "--alerting.alertmanager-url=am:9093"}, "--alerting.alertmanager-url=am:9093: "},
		{[]string{quick, "--alerting.alertmanager-url=http://am", "--alerting.alertmanager-url=http://am"}, "http://am: given more than once"},
		{[]string{quick, "--alerting.alertmanager-config-file=" + web}, ": has no effect without --alerting.alertmanager-url"},
		{[]string{quick, "--replay.send-alerts", "--alerting.alertmanager-url=http://u:p@am:9093"}, "credentials in a separate file"},
		{[]string{quick, "--replay.send-alerts", "--alerting.alertmanager-url=http://am", "--alerting.alertmanager-config-file=" + web}, web + ": "},
		{[]string{quick, "--alerting.rule-files=" + dir + "/nope.yml"}, dir + "/nope.yml: no file matches"},
		{[]string{quick, "--alerting.rule-files=" + dir + "/*.rules"}, dir + "/*.rules: no file matches"},
		{[]string{quick, "--no-alerting", "--alerting.alertmanager-url=http://am"}, "--alerting.alertmanager-url=http://am: has no effect with --no-alerting"},
		{[]string{quick, "--alerting.rule-files=" + badRules}, badRules + ": "},
		{[]string{quick, "fabric"}, "not a capture of a fabric"},
		{[]string{"fabric", "--fabric.interval=100ms"}, "--fabric.interval=100ms: must be 1s or more"},
		{[]string{"fabric", "--fabric.full-interval=10s"}, "--fabric.full-interval"},
		{[]string{"fabric", "--fabric.forget-after=1m"}, "--fabric.forget-after"},
		{[]string{"fabric", "--fabric.port=255"}, "--fabric.port"},
		{[]string{"fabric", "--fabric.rate=0"}, "--fabric.rate"},
		{[]string{"fabric", "--fabric.in-flight=65"}, "--fabric.in-flight"},
		{[]string{"fabric", "--fabric.timeout=1ms"}, "--fabric.timeout"},
		{[]string{"fabric", "--fabric.retries=11"}, "--fabric.retries"},
		{[]string{"fabric", "--fabric.pkey-index=65536"}, "--fabric.pkey-index"},
		{[]string{"fabric", "--web.max-requests=0"}, "--web.max-requests"},
		{[]string{"fabric", "--web.telemetry-path=metrics"}, "--web.telemetry-path"},
		{[]string{"fabric", "--web.telemetry-path=/links"}, "--web.telemetry-path=/links: path in use: GET /links: choose another path, such as /metrics"},
		{[]string{"fabric", "--web.telemetry-path=/links", "--web.route-prefix=/{a}"}, "--web.route-prefix=/{a}: must be a path without any of {}%?#"},
		{[]string{"fabric", "--web.telemetry-path=/lin%6bs"}, "--web.telemetry-path=/lin%6bs: must be a path without any of {}%?#"},
		{[]string{"fabric", "--web.external-url=host"}, "--web.external-url"},
		{[]string{"fabric", "--web.config.file=" + web}, "--web.config.file"},
		{[]string{"--runtime.gomaxprocs=0"}, "--runtime.gomaxprocs"},
		{[]string{"--web.telemetry-path=metrics"}, "--web.telemetry-path"},
		{[]string{quick, "--web.telemetry-path=/api/v1/node"}, "--web.telemetry-path=/api/v1/node: path in use: GET /api/v1/node: choose another path, such as /metrics"},
		{[]string{"--web.external-url=example.org"}, "--web.external-url"},
		{[]string{"--web.config.file=" + web}, "--web.config.file"},
		{[]string{"--web.listen-address=127.0.0.1:99999"}, "99999"},
		{[]string{"--collector.disable-defaults"}, "--collector.NAME"},
		{[]string{"capture"}, "--output"},
		{[]string{quick, "check", "--only=RDMAPortDwon"}, "--only=RDMAPortDwon: unknown alert: did you mean RDMAPortDown"},
		{[]string{quick, "check", "--only=Flapping"}, "RDMALinkFlapping"},
		{[]string{quick, "check", "--only=zzz"}, "docs/alerts.md"},
		{[]string{quick, "check", "--severity=fatal"}, "fatal"},
		{[]string{quick, "check", "--for=1m"}, "--for=1m0s: cannot be combined with --replay"},
		{[]string{"check", "--for=-1s"}, "--for=-1s"},
		{[]string{"check", "--timeout=0s"}, "--timeout=0s"},
		{[]string{"check", "--daemon=localhost:10879"}, "--daemon=localhost:10879: must be http://HOST:PORT"},
		{[]string{"rules"}, "--set"},
		{[]string{"rules", "--set=all"}, "all"},
		{[]string{"rules", "--set=node", "--output=" + dir + "/no/where"}, "--output=" + dir + "/no/where: no such file or directory"},
		{[]string{"rules", "--set=node", "--output=" + web}, "not a directory"},
		{[]string{quick, "topo", "--nccl-version=new"}, "--nccl-version=new"},
		{[]string{quick, "topo", "--nccl-env=PATH=/"}, "--nccl-env=PATH=/"},
		{[]string{"dashboards"}, "--output"},
		{[]string{"dashboards", "-o", "-"}, "--output=-: must be a directory"},
		{[]string{"dashboards", "--output=" + dir + "/no/where"}, "--output=" + dir + "/no/where: no such file or directory"},
		{[]string{"dashboards", "--output=" + web}, "not a directory"},
		{[]string{quick, "capture", "-o", dir + "/no/where"}, "--output=" + dir + "/no/where"},
		{[]string{quick, "capture", "-o", dir + "/x", "--every=0s"}, "--every"},
	} {
		code, out, errs := runProgram(t, c.args...)
		last := errs[strings.LastIndex(strings.TrimSuffix(errs, "\n"), "\n")+1:]
		exit := 2
		if slices.Contains(c.args, "check") {
			exit = 3
		}
		if code != exit || out != "" || !errorLine.MatchString(last) || !strings.Contains(last, c.want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q, want %q", c.args, code, out, errs, c.want)
		}
	}
	after, err := os.ReadDir(dir)
	must(t, err)
	if len(after) != len(before) {
		t.Errorf("something was written: %v", after)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, arg := range []string{"--help", "--version", "help"} {
		if code, out, errs := runProgram(t, arg); code != 0 || !strings.Contains(out, "rdma_exporter") || errs != "" {
			t.Errorf("%s: exit %d, stdout %.100q, stderr %q", arg, code, out, errs)
		}
	}
}

var every = flag.Bool("every", false, "capture every recorded machine with all its rounds")

// TestCaptureOfMachines: a capture of a recorded machine serves what the machine serves, and an anonymised one is
// written again as it is. A variant has no other kinds of files than its base has, and a third round none that the
// second has not: they take -every.
func TestCaptureOfMachines(t *testing.T) {
	machines.Each(t, func(t *testing.T, name string) {
		if machines.IsVariant(t, name) && name != "pod-took-device-ok" && !*every {
			return
		}
		machine := machines.Fixture(name)
		if a := machines.Load(t, name); len(a.Rounds) > 2 && !*every {
			a.Rounds = a.Rounds[:2]
			machine = machines.Written(t, a)
		}
		dir := t.TempDir()
		file, first, second := filepath.Join(dir, "c.txtar"), filepath.Join(dir, "first"), filepath.Join(dir, "second")
		for _, args := range [][]string{
			{"--replay=" + machine, "--log.level=error", "capture", "-o", file},
			{"--replay=" + file, "--log.level=error", "capture", "--anonymise", "-o", first},
			{"--replay=" + first, "--log.level=error", "capture", "-o", second},
		} {
			args = append(args, "--collect.timeout=5m") // of a busy machine
			if code, out, errs := runProgram(t, args...); code != 0 || out != "" || errs != "" {
				t.Fatalf("%v: exit %d, stdout %q, stderr %q", args, code, out, errs)
			}
		}
		a, err := os.ReadFile(first)
		must(t, err)
		b, err := os.ReadFile(second)
		must(t, err)
		if string(a) != strings.Replace(string(b), "\n  \"rounds\"", "\n  \"anonymised\": true,\n  \"rounds\"", 1) &&
			string(a) != string(b) {
			t.Errorf("differs: %s", machines.FirstDifference(b, a))
		}
		want, got := machines.SeriesOf(machines.Play(t, machine).Families), machines.SeriesOf(machines.Play(t, file).Families)
		if !slices.Equal(want, got) {
			t.Errorf("the capture lacks %q, and has %q beside", machines.OnlyIn(want, got), machines.OnlyIn(got, want))
		}
	})
}

// TestCaptureToStandardOutput is what a file holds.
func TestCaptureToStandardOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.txtar")
	if code, _, errs := runProgram(t, "--replay=demo", "--log.level=error", "capture", "-o", file); code != 0 {
		t.Fatal(errs)
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if code, out, _ := runProgram(t, "--replay=demo", "--log.level=error", "capture", "-o", "-"); code != 0 ||
		out != string(want) {
		t.Errorf("exit %d, %d bytes, a file has %d", code, len(out), len(want))
	}
}

// TestCheckJSONOfReplays: exit code and findings, in the documented form.
func TestCheckJSONOfReplays(t *testing.T) {
	for name, want := range map[string]struct {
		code  int
		alert string
	}{
		"dgx-h100-ib": {0, ""}, "port-down": {2, "RDMAPortDown"}, "no-sm": {2, "RDMANoSubnetManager"},
		"gen4-slot": {0, "RDMAPCIeDegraded"}, "no-rdma": {3, ""}, "h200-vm": {3, ""}, "stack-ethernet-ok": {3, ""},
	} {
		code, out, errs := runProgram(t, "--replay="+machines.Fixture(name), "check", "--json")
		var report check.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		if code != want.code || report.ExitCode != code || errs != "" {
			t.Errorf("%s: exit %d, in the report %d, want %d; %s", name, code, report.ExitCode, want.code, errs)
		}
		if (want.alert == "") != (len(report.Findings) == 0) || want.alert != "" && report.Findings[0].Alert != want.alert {
			t.Errorf("%s: findings %+v, want %q", name, report.Findings, want.alert)
		}
		for _, f := range report.Findings {
			machines.CheckTexts(t, name, f)
		}
	}
}

// TestCheckFiltersOfReplays: exit codes of what is asked for, of a machine with a critical finding and two others.
func TestCheckFiltersOfReplays(t *testing.T) {
	for args, want := range map[string]int{
		"--only=RDMALinkErrors":            1,
		"--only=RDMAPortDown":              2,
		"--severity=critical":              2,
		"--strict":                         2,
		"--only=RDMALinkDegraded":          0,
		"--only=RDMALinkDegraded --strict": 0,
		"--only=RDMALinkFlapping":          3, // it looks back further than the recording
		"--only=RDMADeviceHot":             0, // one of two reasons; the recording has no temperatures of NICs
		"--only=RDMAGPUFabricDegraded":     3, // its GPUs have no NVLinks
	} {
		code, out, errs := runProgram(t, append([]string{"--replay=demo", "check", "--verbose"}, strings.Fields(args)...)...)
		if code != want || errs != "" {
			t.Errorf("%s: exit %d, want %d\n%s%s", args, code, want, out, errs)
		}
	}
}

// TestCheckUnknownIsNotOKOfReplays: where staging cannot be seen, it is not evaluated; where no job asks, the question
// does not arise.
func TestCheckUnknownIsNotOKOfReplays(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		text string
	}{
		"gdr-unseen-ok": {3, `unknown  state unknown: rdma_gdr_gpu_transport_info{reason="dmabuf_unseen"}: grant the exporter CAP_BPF and CAP_PERFMON`},
		// Jobs observed by eBPF programs.
		"gdr-ebpf-direct-ok": {0, ": ok\n1 of 1 rule evaluated over "},
		"gdr-ebpf-cache-ok":  {0, ": ok\n1 of 1 rule evaluated over "},
		"gdr-ebpf-staging":   {1, ": warning: job sends data of "},
		"gdr-ebpf-mixed":     {1, ": warning: job sends data of "},
		"gdr-ebpf-older-ok":  {3, `state unknown: rdma_gdr_gpu_transport_info{reason="started_before"}`},
		"gdr-ebpf-lost-ok":   {3, `state unknown: rdma_gdr_gpu_transport_info{reason="events_lost"}`},
		"gdr-ok-live":        {0, ": ok\n1 of 1 rule evaluated over "},
		"gdr-ok":             {3, ": unknown: no rule was evaluated\n0 of 1 rule evaluated over 6m of the capture, 1 not applicable"}, // it alone was asked for
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runProgram(t, "--replay="+machines.Fixture(name), "check", "--strict", "--verbose",
				"--only=RDMAGPUDirectStaging/staging")
			if code != c.code || !strings.Contains(out, c.text) || errs != "" {
				t.Errorf("exit %d, want %d and %q\n%s%s", code, c.code, c.text, out, errs)
			}
		})
	}
}

// TestExcludedDeviceIsNeverOpened puts a FIFO where a read would block.
func TestExcludedDeviceIsNeverOpened(t *testing.T) {
	dir := machines.Tree(t, "dgx-h100-ib")
	for _, file := range []string{"ports/1/state", "node_type", "fw_ver", "ports/1/hw_counters/out_of_sequence"} {
		fifo := filepath.Join(dir, "sys/class/infiniband/mlx5_0", file)
		must(t, os.Remove(fifo))
		must(t, syscall.Mkfifo(fifo, 0o644))
	}
	code, out, errs := runProgram(t, "--path.rootfs="+dir, "--device.exclude=mlx5_0", "check", "--json")
	if code != 0 || strings.Contains(out, "Stuck\"") && strings.Contains(out, "mlx5_0") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	if errs != "" {
		t.Errorf("complains: %s", errs)
	}
}

// TestCollectorOffIsGap: what a collector that is off would bring, where it applies.
func TestCollectorOffIsGap(t *testing.T) {
	for off, want := range map[string][]string{
		"--no-collector.pcie":       {"RDMAPCIeDegraded", "RDMAPCIeErrors"},
		"--no-collector.gpu":        {"RDMAGPUFabricDegraded"},
		"--no-collector.infiniband": {"RDMAPortDown", "RDMALinkErrors", "RDMADeviceHot"}, // what the devices and ports are is not known
	} {
		t.Run(off, func(t *testing.T) {
			code, out, errs := runProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), off, "check", "--json")
			var r check.Report
			must(t, json.Unmarshal([]byte(out), &r))
			var got []string
			for _, n := range r.NotEvaluated {
				if n.Reason == string(coverage.CollectorDisabled) {
					got = append(got, n.Alert)
					if n.Needs != strings.Replace(off, "--no-", "--", 1) {
						t.Errorf("%s: needs %s", n.Alert, n.Needs)
					}
				}
			}
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Errorf("%s is not reported: %v (exit %d, %s)", name, got, code, errs)
				}
			}
		})
	}
}

// TestRemedyOfALinkThatIsUp: a port that is not ACTIVE although its link is up waits for a subnet manager, not for a
// cable; in a guest the hypervisor decides. One without a link needs the cable.
func TestRemedyOfALinkThatIsUp(t *testing.T) {
	const manager, cable, hypervisor = "check that the subnet manager", "Reseat the cable", "on the hypervisor"
	for name, c := range map[string]struct{ want, not []string }{
		"guest-vf-down-link-up": {[]string{manager, hypervisor}, []string{cable}},
		"port-down":             {[]string{cable}, []string{manager, hypervisor}},
	} {
		code, out, errs := runProgram(t, "--replay="+machines.Fixture(name), "check", "--only=RDMAPortDown")
		if code != 2 || errs != "" {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
		for _, text := range c.want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q\n%s", name, text, out)
			}
		}
		for _, text := range c.not {
			if strings.Contains(out, text) {
				t.Errorf("%s: %q\n%s", name, text, out)
			}
		}
	}
}

// TestCheckOfAHealthyMachineIsShort: check on a healthy node fits 12 lines of a terminal with 100 columns.
func TestCheckOfAHealthyMachineIsShort(t *testing.T) {
	const columns, most = 100, 12
	code, out, errs := runProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), "check")
	lines := 0
	for line := range strings.Lines(out) {
		lines += max(1, (len([]rune(strings.TrimSuffix(line, "\n")))+columns-1)/columns)
	}
	if code != 0 || lines > most || errs != "" {
		t.Errorf("exit code %d, %d lines, want %d at most:\n%s%s", code, lines, most, out, errs)
	}
}
