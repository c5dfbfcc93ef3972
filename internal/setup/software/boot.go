package software

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/snapshot/hostdata"
)

// bootDirs have the names of modules to load at boot: modules-load.d(5), modprobe.d(5) with "softdep nvidia post:
// nvidia-peermem", and /etc/rdma/modules of rdma-core, whose files udev rules load for RDMA devices.
var bootDirs = []string{
	"etc/modules-load.d", "run/modules-load.d", "usr/lib/modules-load.d", "lib/modules-load.d",
	"etc/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d", "etc/rdma/modules",
}

// modulesFile has them too: of Debian's init scripts.
const modulesFile = "etc/modules"

// Loader returns the path of the file that loads a module at boot; empty if there is none. unknown is the reason why
// the result is not certain.
func Loader(files hostdata.SetupFiles, module string) (file, unknown string) {
	same := func(word string) bool { return strings.ReplaceAll(word, "-", "_") == module }
	known := false
	for _, p := range slices.Sorted(maps.Keys(files)) {
		dir := path.Dir(p)
		known = known || path.Base(p) == "modules-load.d"
		if !slices.Contains(bootDirs, dir) && !slices.Contains(bootDirs, p) && p != modulesFile {
			continue
		}
		unknown = cmp.Or(files.Unread(p), unknown)
		if slices.Contains(bootDirs, p) {
			continue
		}
		for line := range strings.Lines(files[p].Text) {
			words := strings.Fields(line)
			if len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], ";") {
				continue
			}
			if strings.HasSuffix(dir, "modprobe.d") {
				if words[0] != "softdep" && words[0] != "install" || len(words) < 3 {
					continue
				}
				words = words[2:]
			}
			if slices.ContainsFunc(words, same) {
				return "/" + p, ""
			}
		}
	}
	if !known && unknown == "" {
		unknown = "no directory modules-load.d: /etc and /usr/lib of the host are not visible, or modules are loaded in another way"
	}
	return "", unknown
}
