//go:build e2e

package kernel

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// needsPrivileges are the series that an unprivileged user cannot have, with the required capability.
var needsPrivileges = []string{
	"rdma_kernel_log_",                // CAP_SYSLOG
	"rdma_device_pcie_settings_info{", // CAP_SYS_ADMIN: configuration space beyond its first 64 bytes
	`rdma_setup_info{domain="pcie"`,   // the same: max_read_request, max_payload
	`rdma_setup_objects{`,             // the same, and others
}

// testUnprivileged runs an exporter as nobody: everything that requires no capability is exposed, and missing
// permissions are reported.
func testUnprivileged(t *testing.T, g *guest) {
	g.must(t, "echo 1 >/proc/sys/kernel/dmesg_restrict")
	g.must(t, "echo nobody:x:65534:65534::/tmp:/bin/sh >/etc/passwd; su -s /bin/sh nobody -c 'exec /tmp/rdma_exporter --no-alerting --collect.no-budget --web.listen-address=:"+modulesPort+
		"' >"+shareMount+"/nobody.log 2>&1 & echo $! >/tmp/nobody.pid")
	defer g.must(t, "kill $(cat /tmp/nobody.pid)")
	defer func() {
		if t.Failed() {
			t.Log(content(filepath.Join(g.share, "nobody.log")))
		}
	}()
	eventually(t, func() error {
		root, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		nobody, err := scrape(t.Context(), g.modules)
		if err != nil {
			return err
		}
		for key := range root {
			if _, there := nobody[key]; !there && !isOwn(key) && !isOfPast(key, root) &&
				!slices.ContainsFunc(needsPrivileges, func(p string) bool { return strings.HasPrefix(key, p) }) {
				return fmt.Errorf("nobody has no %s", key)
			}
		}
		if d := nobody.diff(samples{
			`rdma_scrape_permission_denied{source="module_eeprom"}`: 1, `rdma_scrape_permission_denied{source="kernel_log"}`: 1,
		}); d != "" {
			return fmt.Errorf("%s", d)
		}
		return nil
	})
}

var ofPriority = regexp.MustCompile(`_total\{device="(\w+)".*,netdev="(\w+)",port="(\d+)",priority="(\d)"`)

// isOfPast reports whether a counter is of a priority without PFC: an exporter exposes it if the priority has counted,
// or had PFC, before.
func isOfPast(key string, now samples) bool {
	m := ofPriority.FindStringSubmatch(key)
	if m == nil {
		return false
	}
	_, lossless := now[fmt.Sprintf(`rdma_port_pfc_enabled{device=%q,netdev=%q,port=%q,priority=%q}`,
		m[1], m[2], m[3], m[4])]
	return !lossless
}
