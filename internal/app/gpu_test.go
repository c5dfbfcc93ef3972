package app

import (
	"strings"
	"testing"
)

// TestGPURelease: the request says what it did, or why it did nothing.
func TestGPURelease(t *testing.T) {
	live := serve(t, "--path.rootfs="+tree(t, "homelab-cx4-qdr"))
	replay := serve(t, "--replay="+fixture("dgx-h100-ib"))
	for _, c := range []struct {
		name   string
		s      *server
		query  string
		status int
		text   string
	}{
		{"30m", live, "?for=30m", 200, "released: the exporter uses no GPU for 30m; for=0s ends the release\n"},
		{"end", live, "?for=0s", 200, "release ended, GPUs are read again\n"},
		{"no time", live, "", 400, "must be a duration up to 24h"},
		{"not a time", live, "?for=soon", 400, "for=soon: must be"},
		{"negative", live, "?for=-1s", 400, "for=-1s: must be"},
		{"too long", live, "?for=25h", 400, "up to 24h"},
		{"replay", replay, "?for=30m", 503, "not all GPUs released: a replay holds no GPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, body := c.s.post(t, "/-/gpu/release"+c.query); status != c.status || !strings.Contains(body, c.text) {
				t.Errorf("%q: status %d, %q", c.query, status, body)
			}
		})
	}
	if status, _, h := live.get(t, "/-/gpu/release?for=30m"); status != 405 || h.Get("Allow") != "POST" {
		t.Errorf("GET: status %d, allows %q", status, h.Get("Allow"))
	}
}

// TestGPUMode: full mode serves more, and another mode is refused.
func TestGPUMode(t *testing.T) {
	const power = `rdma_gpu_power_watts{`
	for mode, want := range map[string]bool{"fabric": false, "full": true} {
		t.Run(mode, func(t *testing.T) {
			s := serve(t, "--replay="+fixture("dgx-h100-ib"), "--collector.gpu.mode="+mode)
			if _, body, _ := s.get(t, "/metrics"); strings.Contains(body, power) != want || !strings.Contains(body, "rdma_gpu_pcie_width_lanes{") {
				t.Errorf("power: %v", !want)
			}
		})
	}
	if code, _, errs := command(t, "--collector.gpu.mode=all", "check"); code != 3 || !strings.Contains(errs, "fabric, full") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := command(t, "--collector.gpu.interval=0s"); code != 2 || !strings.Contains(errs, "--collector.gpu.interval=0s: must be") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
