package traits

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Named is a host to compare.
type Named struct {
	Name string `json:"host"`
	Host
}

// Difference is a setting whose known values differ between hosts.
type Difference struct {
	Setting string  `json:"setting"`
	Role    string  `json:"role,omitempty"` // as Trait.Role
	Affects Effect  `json:"affects,omitempty"`
	Values  []Value `json:"values"` // the most frequent first
	// Unknown are the hosts without a value.
	Unknown []string `json:"unknown,omitempty"`
}

// Value is a value with the hosts that have it.
type Value struct {
	Value string   `json:"value"`
	Hosts []string `json:"hosts"`
	// Objects that have it, by host.
	Objects map[string][]string `json:"objects"`
}

// Breaks reports whether the difference slows or breaks jobs between the hosts: a warning.
func (d *Difference) Breaks() bool { return d.Affects != "" || breaking[d.Setting] }

// breaking are the settings without an effect of their own that do.
var breaking = map[string]bool{"rate": true, "state": true, "link_layer": true}

// foremost are the settings that are shown first, in this order.
var foremost = []string{"kind", "state", "rate", "link_layer", "netdev_mtu", "rdma_active_mtu", "firmware"}

// Compare returns what differs. The kind of the hosts is compared too.
func Compare(hosts []Named) (out []Difference) {
	type key struct{ setting, role string }
	found := map[key]*Difference{}
	for _, h := range hosts {
		for _, t := range append([]Trait{{Setting: "kind", Value: h.Kind, Objects: []string{"host"}}}, h.Traits...) {
			if t.Value == "" {
				continue
			}
			k := key{t.Setting, t.Role}
			if found[k] == nil {
				found[k] = &Difference{Setting: t.Setting, Role: t.Role, Affects: t.Affects}
			}
			found[k].add(h.Name, t)
		}
	}
	for _, d := range found {
		known := map[string]bool{}
		alike := true
		for _, v := range d.Values {
			for _, name := range v.Hosts {
				known[name] = true
			}
		}
		for _, v := range d.Values {
			alike = alike && len(v.Hosts) == len(known)
		}
		if alike {
			continue
		}
		for _, h := range hosts {
			if !known[h.Name] {
				d.Unknown = append(d.Unknown, h.Name)
			}
		}
		slices.SortStableFunc(d.Values, func(a, b Value) int { return len(b.Hosts) - len(a.Hosts) })
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Setting, b.Setting), cmp.Compare(a.Role, b.Role))
	})
	return out
}

func (d *Difference) add(name string, t Trait) {
	i := slices.IndexFunc(d.Values, func(v Value) bool { return v.Value == t.Value })
	if i < 0 {
		i = len(d.Values)
		d.Values = append(d.Values, Value{Value: t.Value, Objects: map[string][]string{}})
	}
	d.Values[i].Hosts = append(d.Values[i].Hosts, name)
	d.Values[i].Objects[name] = t.Objects
}

// rank orders differences: those of foremost, those that break something, others.
func (d *Difference) rank() int {
	if i := slices.Index(foremost, d.Setting); i >= 0 {
		return i - len(foremost)
	}
	if d.Breaks() {
		return 0
	}
	return 1
}

// String names the setting: "firmware (compute)".
func (d *Difference) String() string {
	if d.Role == "" {
		return d.Setting
	}
	return d.Setting + " (" + d.Role + ")"
}

// Incomparable lists the settings that some hosts have and others do not, and whose known values do not differ.
func Incomparable(hosts []Named, differences []Difference) []string {
	count := map[string]int{}
	for _, h := range hosts {
		own := map[string]bool{}
		for _, t := range h.Traits {
			own[strings.TrimSpace(t.Setting+" "+t.Role)] = true
		}
		for name := range own {
			count[name]++
		}
	}
	for _, d := range differences {
		delete(count, strings.TrimSpace(d.Setting+" "+d.Role))
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == len(hosts) })
	return slices.Sorted(maps.Keys(count))
}
