//go:build e2e

package packages

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	installedUnit = "/usr/lib/systemd/system/rdma_exporter.service"
	fabricUnit    = "/usr/lib/systemd/system/rdma_exporter-fabric.service"
	flags         = "/etc/default/rdma_exporter"
	stateDir      = "/var/lib/rdma_exporter"
	enabledLink   = "/etc/systemd/system/multi-user.target.wants/rdma_exporter.service"
	helperUnit    = "/usr/lib/systemd/system/rdma_exporter-helper.service"
	helperSocket  = "/usr/lib/systemd/system/rdma_exporter-helper.socket"
	fabricLink    = "/etc/systemd/system/multi-user.target.wants/rdma_exporter-fabric.service"
)

func TestPackages(t *testing.T) {
	command(t, "./packages.sh")
	old := build(t, oldVersion, t.TempDir())
	t.Run("reproducible", func(t *testing.T) { testReproducible(t, old.all(t), build(t, oldVersion, t.TempDir()).all(t)) })
	t.Run("libraries", func(t *testing.T) { testLibraries(t, old) })
	t.Run("rpm", func(t *testing.T) { testRPM(t, old) })

	r := makeTree(t, old.deb("rdma-exporter"))
	if !t.Run("without systemd", func(t *testing.T) { testImage(t, r, old) }) {
		return
	}
	next := build(t, newVersion, old.folder)
	t.Run("with systemd", func(t *testing.T) { testSystem(t, boot(t, r), old, next) })
	t.Run("rpm without systemd", func(t *testing.T) { testRPMScripts(t, r, old, next) })
}

// testImage installs and purges without a running systemd: in a chroot, or an image build.
func testImage(t *testing.T, r tree, b built) {
	before := r.files(t)
	r.run(t, "apt-get", "install", "-y", r.add(t, b.deb("rdma-exporter")))
	user := r.run(t, "getent", "passwd", "rdma_exporter")
	if !strings.HasSuffix(strings.TrimSpace(user), ":"+stateDir+":/usr/sbin/nologin") || !r.has(enabledLink) {
		t.Errorf("user %q, enabled: %t", user, r.has(enabledLink))
	}
	if r.has(fabricLink) {
		t.Error("fabric mode is enabled")
	}
	for _, unit := range []string{installedUnit, fabricUnit, helperSocket, helperUnit} {
		if out := r.run(t, "systemd-analyze", "verify", unit); out != "" {
			t.Errorf("systemd-analyze verify: %s", out)
		}
	}
	r.run(t, "systemctl", "enable", "rdma_exporter-fabric") // a purge removes the link

	// The other build replaces this one, takes over its user and files, and the remains of the first one can be purged.
	r.run(t, "apt-get", "install", "-y", r.add(t, b.deb("rdma-exporter-nogpu")))
	r.run(t, "dpkg", "--purge", "rdma-exporter")
	for _, name := range []string{flags, "/etc/rdma_exporter/rdma_exporter.yml", "/usr/bin/rdma_exporter", enabledLink} {
		if !r.has(name) {
			t.Errorf("%s went with the build that was replaced", name)
		}
	}
	r.run(t, "getent", "passwd", "rdma_exporter")
	r.run(t, "apt-get", "purge", "-y", "rdma-exporter-nogpu")
	r.expectNoResidue(t, before)
}

func testSystem(t *testing.T, s system, old, next built) {
	before := s.files(t)
	s.run(t, "apt-get", "install", "-y", s.add(t, old.deb("rdma-exporter")))
	t.Run("sandbox", func(t *testing.T) { testSandbox(t, s, s.ready(t)) })
	t.Run("check", func(t *testing.T) { testCheck(t, s) })

	write(t, s, flags, "# the administrator's\nRDMA_EXPORTER_OPTS=\"--replay demo\"\n")
	s.run(t, "systemctl", "restart", "rdma_exporter")
	first := s.ready(t)
	expectDemo(t, s)

	s.run(t, "apt-get", "install", "-y", s.add(t, next.deb("rdma-exporter")))
	if second := s.ready(t); second == first {
		t.Error("the upgrade did not restart the service")
	}
	if got := s.run(t, "dpkg-query", "-W", "-f", "${Version}", "rdma-exporter"); got != next.version {
		t.Errorf("version %s is installed, want %s", got, next.version)
	}
	expectDemo(t, s) // with the flags changed by the administrator

	s.run(t, "systemctl", "start", "rdma_exporter-helper.service") // a replay does not ask it
	s.run(t, "systemctl", "stop", "rdma_exporter")
	if err := s.command("systemctl", "is-active", "rdma_exporter-helper.service").Run(); err == nil {
		t.Error("the helper runs without the exporter")
	}
	s.run(t, "apt-get", "install", "-y", "--reinstall", s.add(t, next.deb("rdma-exporter")))
	if err := s.command("systemctl", "is-active", "rdma_exporter").Run(); err == nil {
		t.Error("an upgrade has started a service that the administrator has stopped")
	}
	s.run(t, "systemctl", "start", "rdma_exporter")
	s.ready(t)

	s.run(t, "apt-get", "remove", "-y", "rdma-exporter")
	if _, _, err := s.get("/-/ready"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("removed, and the exporter answers: %v", err)
	}
	if !s.has(flags) || !s.has(stateDir) {
		t.Errorf("removed, not purged, and gone: flags there %t, state there %t", s.has(flags), s.has(stateDir))
	}
	if s.command("test", "-e", "/run/rdma_exporter-helper.sock").Run() == nil {
		t.Error("removed, and the socket of the helper is there")
	}
	s.run(t, "apt-get", "purge", "-y", "rdma-exporter")
	s.expectNoResidue(t, before)
}

// testSandbox checks the process as the unit runs it.
func testSandbox(t *testing.T, s system, pid string) {
	uid := s.run(t, "id", "-u", "rdma_exporter")
	own, strong := capabilitySet(unix.CAP_NET_ADMIN, unix.CAP_SYSLOG),
		capabilitySet(unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH)
	expectStatus(t, pid,
		map[string]string{"Uid": uid, "CapEff": own, "CapAmb": own, "CapBnd": own, "NoNewPrivs": "1", "Seccomp": "2"})
	binary := testHelper(t, s)
	expectStatus(t, binary,
		map[string]string{"CapEff": strong, "CapAmb": strong, "CapBnd": strong, "NoNewPrivs": "1", "Seccomp": "2"})
	if got := strings.TrimSpace(field("/proc/"+binary+"/status", "Uid")); strings.HasPrefix(got, uid+"\t") ||
		strings.HasPrefix(got, "0\t") {
		t.Errorf("the helper runs as user %s, the exporter as %s", got, uid)
	}
	if got := s.run(t, "stat", "-c", "%a %U:%G", stateDir, "/run/rdma_exporter"); got !=
		"750 rdma_exporter:rdma_exporter\n700 rdma_exporter:rdma_exporter" {
		t.Errorf("state and runtime directory: %s", got)
	}
	if got := s.run(t, "systemctl", "show", "-P", "MemoryMax", "rdma_exporter"); got != strconv.Itoa(256<<20) {
		t.Errorf("MemoryMax %s", got)
	}
	if _, body, err := s.get("/metrics"); err != nil || !strings.Contains(body, "\nrdma_state_last_write_successful 1\n") {
		t.Errorf("the state directory cannot be written: %v\n%s", err, grep(body, "rdma_state"))
	}

	// A job's files in its home are hidden from the helper's own view only.
	write(t, s, "/root/.nccl.conf", "NCCL_IB_DISABLE=1\n")
	as := []string{
		"nsenter", "-t", s.run(t, "systemctl", "show", "-P", "MainPID", "rdma_exporter-helper"), "-m", "setpriv",
		"--reuid", "rdma_exporter",
		"--regid", "rdma_exporter", "--clear-groups", "--inh-caps=-all,+sys_ptrace,+dac_read_search",
		"--ambient-caps=-all,+sys_ptrace,+dac_read_search", "cat",
	}
	if out, err := s.command(append(as, "/root/.nccl.conf")...).CombinedOutput(); err == nil {
		t.Errorf("the sandbox shows home directories: %s", out)
	}
	if got := s.run(t, append(as, "/proc/1/root/root/.nccl.conf")...); got != "NCCL_IB_DISABLE=1" {
		t.Errorf("settings of a job: %q", got)
	}

	const dropIns = "/etc/systemd/system/rdma_exporter.service.d"
	s.run(t, "mkdir", dropIns)
	s.run(t, "cp", "/usr/share/doc/rdma-exporter/examples/config-space.conf",
		"/usr/share/doc/rdma-exporter/examples/ip-allow.conf", "/usr/share/doc/rdma-exporter/examples/umad.conf",
		"/usr/share/doc/rdma-exporter/examples/ebpf.conf", dropIns)
	s.run(t, "systemctl", "daemon-reload")
	s.run(t, "systemctl", "restart", "rdma_exporter")
	more := capabilitySet(unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_SYSLOG, unix.CAP_BPF, unix.CAP_PERFMON)
	if got := strings.TrimSpace(field("/proc/"+s.ready(t)+"/status", "CapEff")); got != more {
		t.Errorf("with config-space.conf and ebpf.conf: CapEff %s, want %s", got, more)
	}
	if got := s.run(t, "systemctl", "show", "-p", "IPAddressAllow,IPAddressDeny", "rdma_exporter"); !strings.Contains(
		got, "10.0.0.0/24",
	) || !strings.Contains(got, "IPAddressDeny=0.0.0.0/0 ::/0") && !strings.Contains(got, "IPAddressDeny=::/0 0.0.0.0/0") {
		t.Errorf("with ip-allow.conf: %s", got)
	}
	group := strings.Split(s.run(t, "getent", "group", "rdma_umad"), ":")[2]
	if groups := strings.Fields(field("/proc/"+s.ready(t)+"/status", "Groups")); !slices.Contains(groups, group) {
		t.Errorf("with umad.conf: groups %v, want %s", groups, group)
	}
	s.run(t, "rm", "-r", dropIns)
	s.run(t, "systemctl", "daemon-reload")
	s.run(t, "systemctl", "restart", "rdma_exporter")
	s.ready(t)
}

func expectStatus(t *testing.T, pid string, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		if got, _, _ := strings.Cut(strings.TrimSpace(field("/proc/"+pid+"/status", name)), "\t"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// testHelper sends requests to the helper as the exporter's user, as another user and as root, across a restart of the
// helper, and returns its PID outside the namespaces. The helper reports a process of root that holds a device.
func testHelper(t *testing.T, s system) (pid string) {
	const socket = "/run/rdma_exporter-helper.sock"
	if got := s.run(t, "stat", "-c", "%a %U", socket); got != "600 rdma_exporter" {
		t.Errorf("socket of the helper: %s", got)
	}
	holder := s.command("sh",
		"-c", "mkdir -p /dev/infiniband; : >/dev/infiniband/uverbs0; exec sleep 600 </dev/infiniband/uverbs0")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		holder.Process.Kill()
		holder.Wait()
		s.run(t, "rm", "-r", "/dev/infiniband")
	}()
	ask := func(user string) error {
		client := "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => '" + socket +
			`') or die; print $s '{"read":"processes"}'; shutdown $s, 1; local $/; my $a = <$s>; print $a`
		out, err := s.command("setpriv", "--reuid", user, "--clear-groups", "perl", "-e", client).CombinedOutput()
		if err == nil &&
			(!strings.Contains(string(out), `"Command":"sleep"`) || !strings.Contains(string(out), `"Verbs":["uverbs0"]`)) {
			err = fmt.Errorf("the process is missing: %s", out)
		}
		return err
	}
	for range 2 {
		s.run(t, "systemctl", "restart", "rdma_exporter-helper.service")
		for _, user := range []string{"rdma_exporter", "root"} {
			until(t, readyTime, "no answer as "+user, func() error { return ask(user) })
		}
		if err := ask("nobody"); err == nil {
			t.Error("nobody is answered")
		}
	}
	return s.pidOf(t, "rdma_exporter-helper")
}

// testCheck runs check against the service, which reports what is not evaluated: this host has no RDMA device.
func testCheck(t *testing.T, s system) {
	var report struct {
		IntervalSeconds float64 `json:"interval_seconds"` // 0 for a one-off evaluation by check
		Verdict         string  `json:"verdict"`
	}
	until(t, readyTime, "check has no answer from the service", func() error {
		out, err := s.command("rdma_exporter", "check", "--json").Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			return fmt.Errorf("%v, want exit code 3", err)
		}
		if err := json.Unmarshal(out, &report); err != nil {
			return err
		}
		if report.IntervalSeconds == 0 || report.Verdict != "unknown" {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// expectDemo fails unless the exporter serves the recorded node, and evaluates it.
func expectDemo(t *testing.T, s system) {
	t.Helper()
	until(t, readyTime, "check was not answered by the service", func() error {
		out, err := s.command("rdma_exporter", "check").CombinedOutput()
		if !strings.Contains(string(out), "it evaluates a replay, demo") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	code, body, err := s.get("/metrics")
	if err != nil || code != http.StatusOK || !strings.Contains(body, `rdma_port_state_id{device="mlx5_5",port="1"} 1`) {
		t.Errorf("%d %v\n%s", code, err, grep(body, "rdma_port_state_id"))
	}
}

// testRPMScripts runs the scripts of the rpm without systemd and its rpm macros.
func testRPMScripts(t *testing.T, r tree, old, next built) {
	rpm := []string{"--root", string(r), "--nodeps", "--nosignature"} // rpm does not know the Debian packages
	command(t, "rpm", append(rpm, "-i", old.rpm("rdma-exporter"))...)
	r.run(t, "getent", "passwd", "rdma_exporter")
	if !r.has(enabledLink) { // no preset names the unit, so the default applies
		t.Error("the unit is not preset")
	}
	changed := string(r) + "/etc/sysconfig/rdma_exporter"
	if err := os.WriteFile(changed, []byte("# the administrator's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "rpm", append(rpm, "-U", next.rpm("rdma-exporter"))...)
	if got := read(t, changed); got != "# the administrator's\n" || !r.has(enabledLink) {
		t.Errorf("upgraded, and flags are %q, the unit enabled %t", got, r.has(enabledLink))
	}
	command(t, "rpm", append(rpm, "-e", "rdma-exporter")...)
	if r.has(enabledLink) || r.has("/usr/bin/rdma_exporter") {
		t.Error("removed, and still there")
	}
}

func write(t *testing.T, s system, name, text string) {
	t.Helper()
	if err := os.WriteFile(string(s.tree)+name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// capabilitySet returns a set of capabilities as in /proc/PID/status.
func capabilitySet(numbers ...int) string {
	var set uint64
	for _, n := range numbers {
		set |= 1 << n
	}
	s := strconv.FormatUint(set, 16)
	return strings.Repeat("0", 16-len(s)) + s
}

func grep(text, word string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			out.WriteString(line)
		}
	}
	return out.String()
}
