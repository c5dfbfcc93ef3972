package anonymise

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/lazy"
)

// reduce removes the entries without a form, and of others what their form does not know. It names them in the
// description of the archive.
func reduce(a *capture.Archive, p *pseudonyms) {
	left := set{}
	for _, s := range a.Meta.LeftOut {
		left.add(s)
	}
	forms := map[string]keeping{} // of the paths so far: each round has the same
	of := func(name string) keeping {
		k, ok := forms[name]
		if !ok {
			k = formOf(name)
			forms[name] = k
		}
		return k
	}
	for i := range a.Rounds {
		a.Rounds[i].Entries = slices.DeleteFunc(a.Rounds[i].Entries, func(e capture.Entry) bool {
			unknown := !known(e, of)
			if unknown {
				left.add(e.Path)
			}
			return unknown
		})
		for j := range a.Rounds[i].Entries {
			e := &a.Rounds[i].Entries[j]
			if e.Kind != capture.File {
				continue
			}
			if kept := of(e.Path)(p, e.Path, string(e.Data)); kept != string(e.Data) {
				if e.Path != hostNamePath && kept != p.hostless(string(e.Data)) {
					left.add(e.Path + capture.InPart)
				}
				e.Data = []byte(kept)
			}
		}
	}
	a.Meta.LeftOut = slices.Sorted(maps.Keys(left))
}

// isPlainElement reports whether an element of a path has 1 to 63 letters, digits and these signs. As an expression
// with Unicode classes it would be 1.3 MB.
func isPlainElement(s string) bool {
	n := utf8.RuneCountInString(s)
	return n > 0 && n <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.,+:%~-", r)
	})
}

// plainPath returns a path in which x replaces each element that is neither a name of the kernel nor a plain file name.
func plainPath(name string) string {
	name, isPart := strings.CutSuffix(name, capture.InPart)
	parts := strings.Split(name, "/")
	for i, s := range parts {
		if !isPlainElement(s) || !plainNames(s) {
			parts[i] = unknownText
		}
	}
	if name = strings.Join(parts, "/"); isPart {
		name += capture.InPart
	}
	return name
}

const hostNamePath = "proc/sys/kernel/hostname"

// known reports whether an entry is of a known file or place. A link has to lead to one too.
func known(e capture.Entry, of func(string) keeping) bool {
	isKnown := func(name string) bool { return places().MatchString(name) || of(name) != nil }
	switch e.Kind {
	case capture.File:
		return of(e.Path) != nil
	case capture.Link:
		return isKnown(e.Path) && isKnown(path.Join(path.Dir(e.Path), e.Target))
	}
	return isKnown(e.Path)
}

// hostFile replaces what has a notation of its own in a file of the host.
func (p *pseudonyms) hostFile(name, text string) string {
	switch {
	case isIPv6Route(name):
		return p.ipv6Routes(text, p.lowOf, p.netOf)
	case name == "proc/sys/kernel/random/boot_id", name == statePath:
		return p.bootIDs(text)
	}
	return text
}

// statePath is the entry of what the exporter remembers of links and devices.
const statePath = "exporter/state.json"

func isIPv6Route(name string) bool {
	return strings.HasPrefix(name, "proc/") && strings.HasSuffix(name, "/net/ipv6_route")
}

var ipv6Field = lazy.Regexp(`\b[0-9a-f]{32}\b`)

// ipv6Routes replaces the addresses of /proc/net/ipv6_route, which have no colons.
func (p *pseudonyms) ipv6Routes(text string, low, net func(string) string) string {
	return ipv6Field().ReplaceAllStringFunc(text, func(m string) string {
		d := []byte(m)
		p.gid(d, low, net)
		return string(d)
	})
}

// bootIDs replaces boot IDs by their order.
func (p *pseudonyms) bootIDs(text string) string {
	return bareUUID().ReplaceAllStringFunc(text, func(id string) string { return cmp.Or(p.boots[id], id) }) // or of a GPU
}

// bootFormat is the pseudonym of a boot ID by its number.
const bootFormat = "%08x-0000-4000-9000-000000000000"

// ulaPseudonym is fd00:db8:0:N, in fc00::/7 like the address it stands for (RFC 4193).
func ulaPseudonym(i int) string { return fmt.Sprintf("fd000db8%08x", i) }
