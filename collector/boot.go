package collector

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// readBoot reads how long the kernel has run. Both files are the host's in a container too; where they cannot be read there is
// nothing to tell. The name of the boot outlives this program and is read once.
func (c *infiniBand) readBoot(h *host.Host) (b snapshot.Boot) {
	text, err := h.Files.Read("proc/uptime", nil)
	if err != nil {
		return b
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e12) {
		return b
	}
	if c.bootID == "" {
		if id, err := h.Files.Read("proc/sys/kernel/random/boot_id", nil); err == nil {
			c.bootID = strings.TrimSpace(string(id))
		}
	}
	return snapshot.Boot{Uptime: &seconds, ID: c.bootID}
}
