// Package packages checks the service against its documentation and, as e2e, installs, upgrades and removes the
// packages on a Debian system with systemd.
package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	packaging = "../../packaging"
	unitFile  = packaging + "/systemd/rdma_exporter.service"
	helper    = packaging + "/systemd/rdma_exporter-helper.service"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// settings returns the settings in the sections of a unit, in order.
func settings(t *testing.T, name string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(read(t, name)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// The unit states everything that these settings would hide.
func TestUnitHidesNothing(t *testing.T) {
	unit := settings(t, unitFile)
	hiding := []string{
		"DynamicUser", "PrivateNetwork", "PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "PrivateUsers",
		"ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProcSubset", "ProtectHostname", "CPUQuota",
		"RootDirectory", "InaccessiblePaths",
	}
	for _, key := range hiding {
		if v, ok := unit[key]; ok {
			t.Errorf("%s=%s denies the exporter data, or stalls it", key, v)
		}
	}
	for key, want := range map[string]string{
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK", "ProtectSystem": "strict", "NoNewPrivileges": "yes",
		"User": "rdma_exporter",
	} {
		if got := unit[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	for _, name := range []string{unitFile, helper} {
		unit := settings(t, name)
		limit, err := strconv.Atoi(strings.TrimSuffix(unit["MemoryMax"][0], "M"))
		if err != nil {
			t.Fatal(err)
		}
		if want := "GOMEMLIMIT=" + strconv.Itoa(limit*8/10) + "MiB"; !slices.Contains(unit["Environment"], want) {
			t.Errorf("%s: Environment=%s lacks %s, 80 %% of the limit", name, unit["Environment"], want)
		}
	}
}

// TestHelper: the process with the strong capabilities has no network, hides no process, and listens where the exporter
// connects.
func TestHelper(t *testing.T) {
	unit, socket, node := settings(t, helper), settings(t, packaging+"/systemd/rdma_exporter-helper.socket"),
		settings(t, unitFile)
	for key, want := range map[string]string{
		"PrivateNetwork": "yes", "IPAddressDeny": "any", "RestrictAddressFamilies": "AF_UNIX", "DynamicUser": "yes",
		"NoNewPrivileges": "yes", "ProtectSystem": "strict", "InaccessiblePaths": "-/var/lib/rdma_exporter",
		"PartOf": "rdma_exporter.service", "Requires": "rdma_exporter-helper.socket",
	} {
		if got := unit[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	for _, key := range []string{"PrivateUsers", "ProtectProc", "ProcSubset", "RootDirectory"} {
		if v, ok := unit[key]; ok {
			t.Errorf("%s=%s hides processes from the helper", key, v)
		}
	}
	for key, want := range map[string]string{"SocketUser": node["User"][0], "SocketMode": "0600"} {
		if got := socket[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if at := "--helper.socket=" + socket["ListenStream"][0] + " "; !strings.Contains(node["ExecStart"][0], at) {
		t.Errorf("the exporter runs with %s, not with %s", node["ExecStart"], at)
	}
	if !slices.Equal(node["Wants"], unit["Requires"]) {
		t.Errorf("the exporter wants %s", node["Wants"])
	}
}

// TestOpenFiles: the units allow the default number of connections and 256 other files.
func TestOpenFiles(t *testing.T) {
	for _, name := range []string{unitFile, packaging + "/systemd/rdma_exporter-fabric.service"} {
		limit := settings(t, name)["LimitNOFILE"]
		if len(limit) != 1 {
			t.Fatalf("%s: LimitNOFILE=%s", name, limit)
		}
		if n, err := strconv.Atoi(limit[0]); err != nil || n < 512+256 {
			t.Errorf("%s: LimitNOFILE=%s, the exporter requires 768", name, limit[0])
		}
	}
}

// The capabilities of the units and of the example next to them are exactly those explained in the documentation.
func TestCapabilities(t *testing.T) {
	_, section, ok := strings.Cut(read(t, packaging+"/README.md"), "\n### Capabilities\n")
	if !ok {
		t.Fatal("packaging/README.md has no section Capabilities")
	}
	section, _, _ = strings.Cut(section, "\n#")
	rows := regexp.MustCompile("(?m)^\\| `(CAP_[A-Z_]+)` \\| (exporter|helper|no, `[a-z-]+.conf`) \\|").
		FindAllStringSubmatch(section, -1)
	documented := map[string][]string{}
	for _, row := range rows {
		documented[row[2]] = append(documented[row[2]], row[1])
	}
	for name, want := range map[string][]string{
		unitFile: documented["exporter"], helper: documented["helper"],
		packaging + "/systemd/config-space.conf": documented["no, `config-space.conf`"],
		packaging + "/systemd/ebpf.conf":         documented["no, `ebpf.conf`"],
	} {
		unit := settings(t, name)
		for _, key := range []string{"AmbientCapabilities", "CapabilityBoundingSet"} {
			if got := unit[key]; len(want) == 0 || !slices.Equal(got, []string{strings.Join(want, " ")}) {
				t.Errorf("%s: %s=%s; packaging/README.md explains %s", name, key, got, want)
			}
		}
	}
}

// TestOnePath: the binary has one path and one user, however it is started.
func TestOnePath(t *testing.T) {
	const program = "/usr/bin/rdma_exporter"
	for _, c := range []struct{ file, want string }{
		{"systemd/rdma_exporter.service", "\nExecStart=" + program + " "},
		{"systemd/rdma_exporter-fabric.service", "\nExecStart=" + program + " fabric "},
		{"systemd/rdma_exporter-helper.service", "\nExecStart=" + program + " helper\n"},
		{"nfpm.yaml", "dst: " + program + ","},
		{"helm/rdma-exporter/templates/_helpers.tpl", "command: [" + program + ", healthy"},
		{"../Dockerfile", "\nENTRYPOINT [\"" + program + "\"]"},
		{"../docs/install.md", "bin/rdma_exporter " + program + "\n"},
	} {
		text := read(t, packaging+"/"+c.file)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s has no %q", c.file, c.want)
		}
		for _, other := range []string{
			"/usr/local/bin/rdma_exporter", "/usr/sbin/rdma_exporter", "/usr/local/sbin/rdma_exporter", "/opt/",
		} {
			if strings.Contains(text, other) {
				t.Errorf("%s has %s", c.file, other)
			}
		}
	}
	node, fabric := settings(t, unitFile), settings(t, packaging+"/systemd/rdma_exporter-fabric.service")
	for _, key := range []string{"User", "Group", "StateDirectory", "StateDirectoryMode"} {
		if len(node[key]) != 1 || !slices.Equal(node[key], fabric[key]) {
			t.Errorf("%s: %q, in fabric mode %q", key, node[key], fabric[key])
		}
	}
}

// TestPackagedUnits: each unit of the repository is in the packages, and their scripts stop and restart it. A purge
// disables what an administrator may enable.
func TestPackagedUnits(t *testing.T) {
	units, err := filepath.Glob(packaging + "/systemd/*.service")
	if err != nil || len(units) < 3 {
		t.Fatal(units, err)
	}
	for _, unit := range append(units, packaging+"/systemd/rdma_exporter-helper.socket") {
		name := filepath.Base(unit)
		files := []string{"nfpm.yaml", "deb/prerm", "rpm/preun"}
		if strings.HasSuffix(name, ".service") {
			files = append(files, "deb/postinst", "rpm/postun")
		}
		if strings.Contains(read(t, unit), "[Install]") {
			files = append(files, "deb/postrm")
		}
		for _, file := range files {
			if !strings.Contains(read(t, packaging+"/"+file), name) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
}
