package software

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/snapshot/hostdata"
)

// MultiUser has links to enabled services: some vendors load the peer memory module by a service of its own.
const MultiUser = "etc/systemd/system/multi-user.target.wants"

// wantsDirs have links to the enabled units. Packages differ in the target: multi-user (Debian), network (RHEL),
// sysinit (openibd).
var wantsDirs = []string{
	MultiUser, "etc/systemd/system/network.target.wants", "etc/systemd/system/network-online.target.wants",
	"etc/systemd/system/sysinit.target.wants", "etc/systemd/system/basic.target.wants",
	"etc/systemd/system/default.target.wants",
}

const sysvDir = "etc/rc3.d"

// unitDirs have the units of packages, in the order of precedence. Only those of unitNames are looked for.
var unitDirs = []string{"etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"}

// unitNames are the units of a service by its name; init scripts have the same names.
var unitNames = map[string][]string{"opensm": {"opensm", "opensmd"}, "openibd": {"openibd"}}

// filesOf returns the init script and the units of a name.
func filesOf(name string) []string {
	out := []string{"etc/init.d/" + name}
	for _, dir := range unitDirs {
		out = append(out, dir+"/"+name+".service")
	}
	return out
}

func unitFiles() (out []string) {
	for _, names := range unitNames {
		for _, name := range names {
			out = append(out, filesOf(name)...)
		}
	}
	slices.Sort(out)
	return out
}

// Unit returns the installed unit of a service; empty: none is visible.
func Unit(files hostdata.SetupFiles, service string) string {
	for _, name := range unitNames[service] {
		for _, file := range filesOf(name) {
			if _, ok := files[file]; ok {
				return name
			}
		}
	}
	return ""
}

// UnitMentions reports whether a unit or init script of a service has a word, as a module that it loads.
func UnitMentions(files hostdata.SetupFiles, service, word string) bool {
	for _, name := range unitNames[service] {
		for _, file := range filesOf(name) {
			if text, _ := files.Text(file); strings.Contains(text, word) {
				return true
			}
		}
	}
	return false
}

// Enabled returns the link that starts a service at boot; empty: none. unknown is why that is not certain.
func Enabled(files hostdata.SetupFiles, service string) (link, unknown string) {
	known := false
	for _, dir := range append(slices.Clone(wantsDirs), sysvDir) {
		_, ok := files.Text(dir)
		known = known || ok
		unknown = cmp.Or(unknown, files.Unread(dir))
		for _, entry := range files.Names(dir) {
			name, _, _ := strings.Cut(strings.TrimSuffix(entry, ".service"), "@")
			if dir == sysvDir {
				name = strings.TrimLeft(strings.TrimPrefix(name, "S"), "0123456789")
			}
			if slices.Contains(unitNames[service], name) {
				return "/" + dir + "/" + entry, ""
			}
		}
	}
	if !known {
		unknown = cmp.Or(unknown, "no directory of enabled units: /etc of the host is not visible, or it has no systemd")
	}
	return "", unknown
}
