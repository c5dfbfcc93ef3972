// Package npd tests the custom plugin of node problem detector.
package npd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const folder = "../../node-problem-detector/"

// plugin is what node problem detector reads of a custom plugin's file (pkg/custompluginmonitor/types/config.go there).
type plugin struct {
	Plugin       string `json:"plugin"`
	PluginConfig struct {
		InvokeInterval    string `json:"invoke_interval"`
		Timeout           string `json:"timeout"`
		MaxOutputLength   int    `json:"max_output_length"`
		Concurrency       int    `json:"concurrency"`
		MessageChange     bool   `json:"enable_message_change_based_condition_update"`
		SkipInitialStatus bool   `json:"skip_initial_status"`
	} `json:"pluginConfig"`
	Source     string `json:"source"`
	Conditions []struct {
		Type    string `json:"type"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"conditions"`
	Rules []struct {
		Type      string   `json:"type"`
		Condition string   `json:"condition"`
		Reason    string   `json:"reason"`
		Path      string   `json:"path"`
		Args      []string `json:"args"`
		Timeout   string   `json:"timeout"`
	} `json:"rules"`
	MetricsReporting bool `json:"metricsReporting"`
}

// TestPlugin: keys that node problem detector knows, and what it asks of their values.
func TestPlugin(t *testing.T) {
	b, err := os.ReadFile(folder + "rdma-fabric.json")
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Plugin != "custom" || p.Source == "" || len(p.Conditions) != 1 || len(p.Rules) != 1 {
		t.Fatalf("%+v", p)
	}
	length := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Error(err)
		}
		return d
	}
	rule, all := length(p.Rules[0].Timeout), length(p.PluginConfig.Timeout)
	// The script ends a check after 5s, and kills it a second later.
	if rule <= 6*time.Second || all < rule || length(p.PluginConfig.InvokeInterval) <= all {
		t.Errorf("%s of the rule, %s of all", rule, all)
	}
	r := p.Rules[0]
	if r.Type != "permanent" || r.Condition != "RDMAFabricUnhealthy" || r.Condition != p.Conditions[0].Type ||
		r.Reason == p.Conditions[0].Reason || filepath.Base(r.Path) != "rdma-fabric.sh" {
		t.Errorf("%+v", p)
	}
}

// TestScript runs the script with the program on recorded machines, and with one that hangs.
func TestScript(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "rdma_exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/rdma_exporter")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hangs := filepath.Join(dir, "hangs")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	fixture := func(name string) string { return "--replay=../../../fixtures/sysfs/" + name + ".txtar" }
	for name, tc := range map[string]struct {
		program, seconds, arg string
		code                  int
		want                  string
	}{
		"fit":        {program, "60", fixture("hdr100-ok"), 0, "The RDMA fabric of this node is fit for jobs"},
		"warning":    {program, "60", fixture("firmware-drift"), 0, "The RDMA fabric of this node is fit for jobs"},
		"evict":      {program, "60", fixture("port-down"), 1, "evict: RDMAPortDown mlx5_5/1"},
		"cordon":     {program, "60", fixture("downshift-one"), 1, "cordon: RDMALinkDegraded mlx5_5/1"},
		"several":    {program, "60", "--replay=demo", 1, "evict: RDMAPFCStormSource mlx5_8/1 and 1 more"},
		"no devices": {program, "60", fixture("no-rdma"), 2, "is unknown"},
		"no replay":  {program, "60", "--replay=/nope", 2, "is unknown"},
		"no program": {dir + "/nope", "60", "--replay=demo", 2, "is unknown"},
		"hangs":      {hangs, "1", "", 2, "is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), folder+"rdma-fabric.sh", tc.arg)
			c.Env = append(os.Environ(), "RDMA_EXPORTER="+tc.program, "RDMA_SECONDS="+tc.seconds)
			out, _ := c.Output()
			text := strings.TrimSpace(string(out))
			if code := c.ProcessState.ExitCode(); code != tc.code || !strings.Contains(text, tc.want) || len(text) > 80 ||
				strings.Contains(text, "\n") {
				t.Errorf("exit %d, %s", code, text)
			}
		})
	}
}
