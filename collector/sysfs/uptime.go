package sysfs

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
)

// ReadUptime reads the first number of /proc/uptime.
func ReadUptime(h *host.Host) (float64, bool) {
	text, err := h.Files.Read("proc/uptime", nil)
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	return seconds, err == nil && seconds >= 0 && seconds < 1e12
}
