// Package values reads and writes the values of settings as text: lists, maps, globs, words of a shell. It is pure.
package values

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
)

// Shell quotes a word for a shell, where it needs it.
func Shell(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("-_./:,=+@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Accepts reports whether a value is one of those wanted: a glob, or several separated by "|".
func Accepts(want, found string) bool {
	return slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool {
		ok, err := path.Match(strings.TrimSpace(w), found)
		return err == nil && ok && found != "" || strings.TrimSpace(w) == found
	})
}

// Majority returns the value of more than half, at least some number, of a list; empty: none.
func Majority(list []string, least int) string {
	for _, v := range list {
		n := 0
		for _, o := range list {
			if o == v {
				n++
			}
		}
		if n >= least && n*2 > len(list) {
			return v
		}
	}
	return ""
}

// Priorities parses a list of priorities, 3,4; "none" is empty.
func Priorities(text string) (out []int, ok bool) {
	if text == "none" {
		return nil, true
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n >= snapshot.Priorities {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

// List returns a list of numbers.
func List[T int | uint32](list []T) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// ListOrNone returns a list of numbers, none if it is empty.
func ListOrNone(list []int) string { return cmp.Or(List(list), "none") }

// OnOff returns whether a setting is on.
func OnOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Mappings parses a DSCP map as it is shown, 24:3 26:3.
func Mappings(text string) (dscps []int, to map[int]int, ok bool) {
	to = map[int]int{}
	for pair := range strings.FieldsSeq(text) {
		d, p := 0, 0
		if n, err := fmt.Sscanf(pair, "%d:%d", &d, &p); err != nil || n != 2 || fmt.Sprintf("%d:%d", d, p) != pair ||
			d < 0 || d > 63 || p < 0 || p >= snapshot.Priorities {
			return nil, nil, false
		}
		dscps, to[d] = append(dscps, d), p
	}
	return dscps, to, len(dscps) > 0
}

// IsClass reports whether a text is a traffic class.
func IsClass(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n < 256
}

// IsNumber reports whether a text is a number of 32 bits.
func IsNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

// Newer reports whether a dotted version is above another.
func Newer(a, b string) bool {
	parts := func(v string) (out []int) {
		for part := range strings.SplitSeq(v, ".") {
			n, _ := strconv.Atoi(part)
			out = append(out, n)
		}
		return out
	}
	return slices.Compare(parts(a), parts(b)) > 0
}

// Binary returns a number of bytes in binary units.
func Binary(n uint64) string {
	for _, u := range []struct {
		shift int
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}} {
		if n >= 1<<u.shift {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(uint64(1)<<u.shift), u.name)
		}
	}
	return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
}

// Connected parses a line of /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask …, addresses in
// hex in the byte order of the host (fib_route_seq_show, net/ipv4/fib_trie.c).
func Connected(f []string) (netdev string, subnet netip.Prefix, ok bool) {
	const up, gateway, host = 1, 2, 4 // RTF_*, include/uapi/linux/route.h
	if len(f) < 8 {
		return "", subnet, false
	}
	flags, err := strconv.ParseUint(f[3], 16, 32)
	to, okTo := hexAddress(f[1])
	mask, okMask := hexAddress(f[7])
	if err != nil || flags&(up|gateway|host) != up || !okTo || !okMask {
		return "", subnet, false
	}
	bits := 0
	for _, b := range mask.As4() {
		for ; b&0x80 != 0; b <<= 1 {
			bits++
		}
	}
	subnet = netip.PrefixFrom(to, bits)
	return f[0], subnet, bits > 0 && bits < 32 && !to.IsMulticast()
}

// hexAddress parses an address as little-endian hosts print it.
func hexAddress(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, false
	}
	slices.Reverse(b)
	return netip.AddrFromSlice(b)
}
