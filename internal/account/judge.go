package account

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdma_exporter/internal/words"
)

// Fault is an alert, firing or pending, or the condition of a suppressed one, with the labels of its object.
type Fault struct {
	Alert  string
	Labels map[string]string
}

// Judge returns the objects with those of faults, and the ones below them, made faulty. A fault of the whole host has
// no object: a fault about port states explains unknown compute ports. The objects given are not changed.
func Judge(objects []Object, faults []Fault) []Object {
	out := append([]Object{}, objects...) // an empty list in JSON, not null
	for _, f := range faults {
		for i := range out {
			if o := &out[i]; f.concerns(o) {
				o.set(Faulty, "%s", f.Alert)
			}
		}
	}
	return out
}

// stateAlerts are the alerts about port states that combine several ports of a host.
var stateAlerts = map[string]bool{
	"RDMAPortDown": true, "RDMANoSubnetManager": true, "RDMADeviceFailed": true,
}

// concerns reports whether a fault is on an object, or on one above it.
func (f Fault) concerns(o *Object) bool {
	is := func(label, value string) bool { return value != "" && f.Labels[label] == value }
	switch {
	case f.Labels["gpu"] != "" || f.Labels["UUID"] != "":
		return o.Kind == GPU && (is("UUID", o.uuid) || is("pci_bus_id", o.address))
	case f.Labels["pci_bus_id"] != "":
		return o.Kind == GPU && is("pci_bus_id", o.address)
	case f.Labels["device"] == "":
		return stateAlerts[f.Alert] && o.Kind == Port && o.Compute && o.Class == Unknown
	case !is("device", o.device), o.Kind == Cage && !isModuleAlert(f.Alert):
		return false
	case o.netdev != "" && f.Labels["netdev"] != "" && !is("netdev", o.netdev):
		return false
	case f.Labels["port"] == "":
		return true
	}
	return is("port", o.port)
}

// Unknowns returns the compute objects of class Unknown: a host with one is not ok.
func Unknowns(objects []Object) (out []Object) {
	for _, o := range objects {
		if o.Compute && o.Class == Unknown {
			out = append(out, o)
		}
	}
	return out
}

// Noun returns the noun for an object in counts and lists: compute port, NIC, GPU.
func (o *Object) Noun() string {
	switch {
	case o.Kind == Port && o.Compute && o.compute:
		return "compute port"
	case o.Kind == GPU:
		return "GPU"
	case o.Kind == Device:
		return "NIC"
	case o.Kind == Function:
		return "PCI function"
	case o.Kind == Member:
		return "bond member"
	}
	return string(o.Kind)
}

// Group holds the objects of one kind, class and reason.
type Group struct {
	Noun, Reason string
	Class        Class
	Names        []string
}

// Groups groups the objects, those that are not healthy first.
func Groups(objects []Object) (out []Group) {
	for _, class := range []Class{Unknown, Faulty, NotExpected, Healthy} {
		for i := range objects {
			o := &objects[i]
			if o.Class != class {
				continue
			}
			noun, reason := o.Noun(), o.Reason
			at := slices.IndexFunc(out, func(g Group) bool { return g.Noun == noun && g.Class == class && g.Reason == reason })
			if at < 0 {
				at, out = len(out), append(out, Group{Noun: noun, Class: class, Reason: reason})
			}
			out[at].Names = append(out[at].Names, o.Name)
		}
	}
	return out
}

// Text returns a class in words.
func (c Class) Text() string { return strings.ReplaceAll(string(c), "_", " ") }

// Line returns the account in one line: "8 NICs, 8 compute ports, 8 GPUs healthy; 2 ports not expected (second port,
// none of its kind has a link)". Healthy cages are left out. The line is empty without objects.
func Line(objects []Object) string {
	var parts []string
	for _, class := range []Class{Unknown, Faulty, Healthy, NotExpected} {
		var nouns []string
		counts, reasons := map[string]int{}, map[string]bool{}
		for i := range objects {
			o := &objects[i]
			if o.Class != class || o.Kind == Cage && (class == Healthy || class == NotExpected) {
				continue
			}
			noun := o.Noun()
			if counts[noun] == 0 {
				nouns = append(nouns, noun)
			}
			counts[noun]++
			reasons[o.Reason] = true
		}
		if len(nouns) == 0 {
			continue
		}
		what := words.Map(nouns, func(n string) string { return words.Count(counts[n], n) })
		part := strings.Join(what, ", ") + " " + class.Text()
		if class == Unknown || class == NotExpected {
			part += fmt.Sprintf(" (%s)", joinFew(slices.Sorted(maps.Keys(reasons))))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// joinFew joins at most two reasons.
func joinFew(reasons []string) string {
	if n := len(reasons) - 2; n > 0 {
		return strings.Join(reasons[:2], "; ") + fmt.Sprintf("; %d other reasons", n)
	}
	return strings.Join(reasons, "; ")
}
