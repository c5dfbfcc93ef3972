package reading

import (
	"math/bits"
	"strconv"
	"strings"
)

// parseDecimal is strconv.ParseUint on bytes, without an allocation.
func parseDecimal(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var n uint64
	for i, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		if i < 19 { // fits
			n = n*10 + uint64(c-'0')
			continue
		}
		hi, lo := bits.Mul64(n, 10)
		var carry uint64
		if n, carry = bits.Add64(lo, uint64(c-'0'), 0); hi+carry != 0 {
			return 0, false
		}
	}
	return n, true
}

// parseNumber parses the kernel's formats %d, %u, 0x%x, "%d: %s" and "%u: %s".
func parseNumber(b []byte) (uint64, bool) {
	s, _, _ := strings.Cut(string(b), ":")
	n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 64)
	return n, err == nil
}
