// Package packages checks the service against its documentation and, as e2e, installs, upgrades and removes the packages on a Debian system
// with systemd.
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
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// settings are those in the sections of a unit, in order.
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
		"DynamicUser", "PrivateNetwork", "PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "PrivateUsers", "ProtectKernelModules",
		"ProtectKernelTunables", "ProtectProc", "ProcSubset", "ProtectHostname", "CPUQuota", "RootDirectory", "InaccessiblePaths",
	}
	for _, key := range hiding {
		if v, ok := unit[key]; ok {
			t.Errorf("%s=%s blinds the exporter, or stalls it", key, v)
		}
	}
	for key, want := range map[string]string{
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK", "ProtectSystem": "strict", "NoNewPrivileges": "yes", "User": "rdma_exporter",
	} {
		if got := unit[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	unit := settings(t, unitFile)
	limit, err := strconv.Atoi(strings.TrimSuffix(unit["MemoryMax"][0], "M"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "GOMEMLIMIT=" + strconv.Itoa(limit*8/10) + "MiB"; !slices.Contains(unit["Environment"], want) {
		t.Errorf("Environment=%s lacks %s, 80 %% of the limit", unit["Environment"], want)
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

// The capabilities of the unit and of the example next to it are exactly those explained in the documentation.
func TestCapabilities(t *testing.T) {
	_, section, ok := strings.Cut(read(t, packaging+"/README.md"), "\n### Capabilities\n")
	if !ok {
		t.Fatal("packaging/README.md has no section Capabilities")
	}
	section, _, _ = strings.Cut(section, "\n#")
	rows := regexp.MustCompile("(?m)^\\| `(CAP_[A-Z_]+)` \\| (yes|no) \\|").FindAllStringSubmatch(section, -1)
	documented := map[string][]string{}
	for _, row := range rows {
		documented[row[2]] = append(documented[row[2]], row[1])
	}
	for name, want := range map[string][]string{unitFile: documented["yes"], packaging + "/systemd/config-space.conf": documented["no"]} {
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
		{"nfpm.yaml", "dst: " + program + ","},
		{"helm/rdma-exporter/templates/_helpers.tpl", "command: [" + program + ", healthy"},
		{"../Dockerfile", "\nENTRYPOINT [\"" + program + "\"]"},
		{"../docs/install.md", "bin/rdma_exporter " + program + "\n"},
	} {
		text := read(t, packaging+"/"+c.file)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s has no %q", c.file, c.want)
		}
		for _, other := range []string{"/usr/local/bin/rdma_exporter", "/usr/sbin/rdma_exporter", "/usr/local/sbin/rdma_exporter", "/opt/"} {
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

// TestPackagedUnits: each unit of the repository is in the packages, and their scripts stop and restart it.
func TestPackagedUnits(t *testing.T) {
	units, err := filepath.Glob(packaging + "/systemd/*.service")
	if err != nil || len(units) < 2 {
		t.Fatal(units, err)
	}
	for _, unit := range units {
		name := filepath.Base(unit)
		for _, file := range []string{"nfpm.yaml", "deb/postinst", "deb/prerm", "deb/postrm", "rpm/preun", "rpm/postun"} {
			if !strings.Contains(read(t, packaging+"/"+file), name) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
}
