package commands_test

import (
	"path/filepath"
	"strings"
	"testing"

	testmachine "rdma_exporter/test/machine"
	"rdma_exporter/test/machines"
)

const (
	validConfig   = "ignore:\n- match: {device: mlx5_3}\n"
	otherConfig   = "ignore:\n- match: {device: mlx5_4}\n"
	invalidConfig = "ignore:\n- match: {dev: mlx5_3}\n"
	ignored3      = `rdma_device_ignored{device="mlx5_3"} 1`
)

func TestCheckConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yml")
	put(t, file, "pins:\n- match: {device: x}\n  lanes: 4\n"+validConfig)
	if code, out, errs := runProgram(t, "check-config", file); code != 0 ||
		out != file+": valid, 1 pins, 1 ignores, 0 cables, 0 setups, 0 switches, 0 racks, 0 peers\n" || errs != "" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	put(t, file, "pins:\n- match: {device: x}\n  lanes: x\n"+invalidConfig)
	want := file + `:3: lanes: "x": must be an integer from 1 to 16` + "\n" +
		file + `:5: match: unknown key "dev", known keys: board_id, device, gpu, hostname, link_layer, netdev, pci_address, port` + "\n"
	if code, out, errs := runProgram(t, "check-config", file); code != 2 || out != "" || errs != want {
		t.Errorf("exit %d, %q, %q, want %q", code, out, errs, want)
	}
	if code, out, errs := runProgram(t, "check-config", file+".nope"); code != 2 || out != "" ||
		errs != file+".nope: no such file or directory\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, _, errs := runProgram(t, "check-config", "../../packaging/rdma_exporter.yml"); code != 0 {
		t.Errorf("the example: exit %d, %s", code, errs)
	}
}

// TestCaptureKeepsConfig: a capture has the file in it, a replay evaluates by it, and another file goes before it.
func TestCaptureKeepsConfig(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "site.yml"), filepath.Join(dir, "other.yml")
	const text = "# ours\nignore:\n- match: {hostname: dgx-*, device: mlx5_3}\n- match: {hostname: elsewhere, device: \"*\"}\n"
	put(t, file, text)
	put(t, other, otherConfig)
	config := func(archive string) string {
		t.Helper()
		a, err := testmachine.Load(archive)
		must(t, err)
		return string(a.Config())
	}
	recorded, again, anonymous := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	for _, c := range []struct {
		args      []string
		out, want string
	}{
		{[]string{"--path.rootfs=" + machines.Tree(t, "no-rdma"), "--config.file=" + file}, recorded, text},
		{[]string{"--replay=" + machines.Fixture("dgx-h100-ib"), "--config.file=" + file}, recorded, text},
		{[]string{"--replay=" + recorded}, again, text},
		{[]string{"--replay=" + recorded, "--config.file=" + other}, again, otherConfig},
		{[]string{"--replay=" + machines.Fixture("dgx-h100-ib")}, again, ""},
	} {
		if code, _, errs := runProgram(t, append(c.args, "--log.level=error", "capture", "-o", c.out)...); code != 0 {
			t.Fatal(errs)
		}
		if got := config(c.out); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
	if code, _, errs := runProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"),
		"--config.file="+file, "--log.level=error",
		"capture", "-o", recorded); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := runProgram(t, "--replay="+recorded, "--log.level=error", "capture", "--anonymise", "-o",
		anonymous); code != 0 {
		t.Fatal(errs)
	}
	if got, want := config(anonymous), "ignore:\n    - match: {hostname: host-1, device: mlx5_3}\n"; got != want {
		t.Errorf("anonymised: %q, want %q", got, want)
	}
	for archive, want := range map[string]bool{machines.Fixture("dgx-h100-ib"): false, recorded: true, anonymous: true} {
		if got := strings.Contains(machines.MetricsOf(t, archive), ignored3); got != want {
			t.Errorf("%s: mlx5_3 is ignored: %v", archive, got)
		}
	}
}
