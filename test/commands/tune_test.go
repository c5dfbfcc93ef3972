package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRulesTuned: flags and file change what is written, and flags win.
func TestRulesTuned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tune.yml")
	must(t, os.WriteFile(file, []byte("leave_out: [RDMADiscards]\nseverities: {RDMAPortDown: warning}\nwaits: {RDMAPortDown: 4m}\nthresholds: {flaps-per-hour: 5, aer-correctable: 100}\nlabels: {team: fabric}\n"), 0o644))
	code, out, errs := runProgram(t, "rules", "--set=node", "--tune.file="+file, "--tune.leave-out=RDMADeviceHot",
		"--tune.severity=RDMALinkErrors:warning=info", "--tune.wait=RDMAPortDown=9m",
		"--tune.threshold=aer-correctable=200", "--tune.label=site=a", `--tune.selector=job="rdma"`)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"for: 9m", "name: aer-correctable}\n    expr: vector(200)", "name: flaps-per-hour}\n    expr: vector(5)",
		`team: "fabric"`, `site: "a"`,
		`rdma_port_state_id{job="rdma"}`, "default_severity: critical",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, gone := range []string{"alert: RDMADiscards\n", "alert: RDMADeviceHot\n"} {
		if strings.Contains(out, gone) {
			t.Errorf("%s is there", gone)
		}
	}
	for _, c := range []struct{ flag, want string }{
		{"--tune.leave-out=RDMAPortDwon", "unknown alert RDMAPortDwon: did you mean RDMAPortDown"},
		{"--tune.severity=RDMAPortDown", "--tune.severity=RDMAPortDown: must be NAME=VALUE"},
		{"--tune.threshold=flap-per-hour=3", "unknown threshold flap-per-hour: did you mean flaps-per-hour"},
		{"--tune.label=severity=x", "label severity: reserved, alerts have this label"},
		{"--tune.selector=job", "selector job:"},
		{"--tune.file=/none", "--tune.file=/none: "},
		{"--object-label=a=b", "has no effect without --format=prometheusrule"},
	} {
		if code, _, errs := runProgram(t, "rules", "--set=central", c.flag); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s", c.flag, code, errs)
		}
	}
}

// TestRulesAsObjects: each file is a PrometheusRule with the same groups; one without alerts and records is none.
func TestRulesAsObjects(t *testing.T) {
	args := []string{"rules", "--set=central", "--tune.leave-out=RDMAExporterDown"}
	_, plain, _ := runProgram(t, args...)
	code, out, errs := runProgram(
		t,
		append(args, "--format=prometheusrule", "--object-label=release=kube-prometheus-stack")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	type groups struct{ Groups []any }
	var want groups
	must(t, yaml.Unmarshal([]byte(plain), &want))
	var got []any
	d := yaml.NewDecoder(strings.NewReader(out))
	var names []string
	for {
		var o struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Spec groups
		}
		if d.Decode(&o) != nil {
			break
		}
		if o.Kind != "PrometheusRule" || o.Metadata.Labels["release"] != "kube-prometheus-stack" || len(o.Spec.Groups) != 1 {
			t.Errorf("%+v", o)
		}
		names, got = append(names, o.Metadata.Name), append(got, o.Spec.Groups...)
	}
	if strings.Join(names, " ") != "rdma-exporter-central-leaf rdma-exporter-central-dcgm rdma-exporter-central-fabric rdma-exporter-central-fabric-alerts rdma-exporter-central-fabric-ber rdma-exporter-central-fabric-congestion rdma-exporter-central-fabric-maintenance rdma-exporter-central-fleet rdma-exporter-central-fleet-alerts rdma-exporter-central-fleet-common rdma-exporter-central-fleet-settings rdma-exporter-central-fleet-symptoms rdma-exporter-central-hosts rdma-exporter-central-jobs rdma-exporter-central-leaf-settings rdma-exporter-central-outliers rdma-exporter-central-peers rdma-exporter-central-switches rdma-exporter-central-targets" ||
		len(got) != len(want.Groups) {
		t.Errorf("%v, %d groups, want %d", names, len(got), len(want.Groups))
	}
	dir := t.TempDir()
	if code, _, errs := runProgram(t, append(args, "--format=prometheusrule", "-o", dir)...); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if files, _ := filepath.Glob(dir + "/*.rules.yml"); len(files) != 19 {
		t.Errorf("%v", files)
	}
}
