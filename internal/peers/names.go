package peers

import (
	"net/netip"
	"strings"

	"rdma_exporter/internal/snapshot/qp"
)

// maxName limits the name of a host: the limit of labels.
const maxName = 128

// ParseHosts returns the names of addresses in a file of hosts(5): the first name of the first line with the address.
// A line that is not of this form is skipped.
func ParseHosts(text []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 || !isHostName(f[1]) {
			continue
		}
		a, err := netip.ParseAddr(f[0])
		if address := qp.ShortAddress(f[0]); err == nil && a.Zone() == "" && out[address] == "" {
			out[address] = f[1]
		}
	}
	return out
}

// isHostName reports whether a text has the characters of a host name (hosts(5)), or those that are found in them.
func isHostName(s string) bool {
	return len(s) <= maxName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == ""
}
