package infiniband

import (
	"strings"

	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot/hostdata"
)

// bootClock is the boot data read, and when.
type bootClock struct {
	uptime reading.Kept[float64] // seconds
	id     string
}

// readBoot returns uptime and boot ID. Both files are the host's in a container too; a file that cannot be read leaves
// its value empty. The kernel sums the times of all processors for /proc/uptime: it is read once a minute, and the
// uptime is advanced by the clock in between. The boot ID does not change while the program runs and is read once.
func (c *infiniBand) readBoot(h *host.Host) hostdata.Boot {
	now := h.Now()
	if c.boot.uptime.Due(now, shared.SlowInterval) || now.Before(c.boot.uptime.Time()) { // the clock was set back
		if c.boot.id == "" {
			if id, err := h.Files.Read("proc/sys/kernel/random/boot_id", nil); err == nil {
				c.boot.id = strings.TrimSpace(string(id))
			}
		}
		uptime, ok := sysfs.ReadUptime(h)
		if !ok {
			return hostdata.Boot{ID: c.boot.id}
		}
		c.boot.uptime.Keep(uptime, now)
	}
	return hostdata.Boot{Uptime: new(c.boot.uptime.Value + now.Sub(c.boot.uptime.Time()).Seconds()), ID: c.boot.id}
}
