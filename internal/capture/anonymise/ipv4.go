package anonymise

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/lazy"
)

// IPv4 addresses are in the routes and neighbours of the network namespace of the host: in hex, the lowest byte first,
// and as text.
var (
	networkFile = lazy.Regexp(`^proc/(?:\d+/)?net/(route|arp)$`)
	ipv4Pattern = lazy.Regexp(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
)

// ipv4 replaces the addresses in routes and neighbours by net, which gets and returns the first 28 bits in hex digits.
// Masks and the address of the default route are kept.
func ipv4(name, text string, net func(digits string) string) string {
	m := networkFile().FindStringSubmatch(name)
	switch {
	case m == nil:
		return text
	case m[1] == "route":
		return rewriteRoutes(text, net)
	}
	return ipv4Pattern().ReplaceAllStringFunc(text, func(address string) string {
		var digits strings.Builder
		for part := range strings.SplitSeq(address, ".") {
			n, err := strconv.ParseUint(part, 10, 8)
			if err != nil {
				return address
			}
			fmt.Fprintf(&digits, "%02x", n)
		}
		b, err := hex.DecodeString(renamed(digits.String(), net))
		if err != nil {
			return address
		}
		return fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3])
	})
}

// renamed returns an address of 8 hex digits with another network.
func renamed(digits string, net func(string) string) string {
	if digits == "00000000" {
		return digits
	}
	return net(digits[:7]) + digits[7:]
}

// rewriteRoutes rewrites the destination and the gateway of the lines of /proc/net/route.
func rewriteRoutes(text string, net func(string) string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		fields := strings.Split(line, "\t")
		for i := 1; i <= 2 && len(fields) > 7; i++ {
			if b, err := hex.DecodeString(fields[i]); err == nil && len(b) == 4 {
				slices.Reverse(b)
				b, _ = hex.DecodeString(renamed(hex.EncodeToString(b), net)) // digits of a map of digits
				slices.Reverse(b)
				fields[i] = strings.ToUpper(hex.EncodeToString(b))
			}
		}
		out.WriteString(strings.Join(fields, "\t"))
	}
	return out.String()
}
