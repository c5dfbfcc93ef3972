package site

import (
	"path"
	"slices"
	"strings"
)

// Match selects devices, ports or GPUs: those that match all keys that are set.
type Match struct {
	Hostname   Globs `yaml:"hostname"`
	Device     Globs `yaml:"device"`
	BoardID    Globs `yaml:"board_id"`
	PCIAddress Globs `yaml:"pci_address"`
	Netdev     Globs `yaml:"netdev"`
	Port       Globs `yaml:"port"`
	LinkLayer  Globs `yaml:"link_layer"`
	GPU        Globs `yaml:"gpu"` // index or UUID; if set, the match selects GPUs
}

// keys returns the keys of a match by their names in the file.
func (m *Match) keys() map[string]*Globs {
	return map[string]*Globs{
		"hostname": &m.Hostname, "device": &m.Device, "board_id": &m.BoardID, "pci_address": &m.PCIAddress,
		"netdev": &m.Netdev, "port": &m.Port, "link_layer": &m.LinkLayer, "gpu": &m.GPU,
	}
}

// given lists the keys that are set, sorted.
func (m *Match) given() []string {
	var out []string
	for name, g := range m.keys() {
		if *g != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Globs are alternatives. Each is a pattern of path.Match in which a slash has no special meaning.
type Globs []string

// allow reports whether a fact matches. No globs match everything. An unknown fact matches no glob.
func (g Globs) allow(fact string, fold func(string) string) bool {
	if g == nil {
		return true
	}
	return fact != "" && slices.ContainsFunc(g, func(pattern string) bool {
		ok, err := path.Match(noSlash(fold(pattern)), noSlash(fold(fact)))
		return ok && err == nil
	})
}

// exactly compares with case.
func exactly(s string) string { return s }

// noSlash replaces slashes, which are special to path.Match, by NUL, which no fact contains.
func noSlash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// valid reports whether a glob has the syntax of path.Match.
func valid(glob string) bool {
	_, err := path.Match(noSlash(glob), "")
	return err == nil
}

// isGlob reports whether a pattern may match more than one text.
func isGlob(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[':
			return true
		case '\\':
			i++
		}
	}
	return false
}

// unquote returns the text that a pattern without wildcards matches.
func unquote(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}
