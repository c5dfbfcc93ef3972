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

// Judge makes the objects of faults faulty, and what hangs below them. A fault of the whole host has no object: one
// about states of ports explains what is unknown of compute ports. The objects given are not changed.
func Judge(objects []Object, faults []Fault) []Object {
	out := append([]Object{}, objects...) // a list in JSON, also of no objects
	for _, f := range faults {
		for i := range out {
			if o := &out[i]; f.concerns(o) {
				o.set(Faulty, "%s", f.Alert)
			}
		}
	}
	return out
}

// ofStates are the alerts about the state of ports that a host has for several of them in one.
var ofStates = map[string]bool{
	"RDMAPortDown": true, "RDMANoSubnetManager": true, "RDMADeviceFailed": true,
}

// concerns reports whether a fault is of an object, or of one above it.
func (f Fault) concerns(o *Object) bool {
	is := func(label, value string) bool { return value != "" && f.Labels[label] == value }
	switch {
	case f.Labels["gpu"] != "" || f.Labels["UUID"] != "":
		return o.Kind == GPU && (is("UUID", o.uuid) || is("pci_bus_id", o.address))
	case f.Labels["pci_bus_id"] != "":
		return o.Kind == GPU && is("pci_bus_id", o.address)
	case f.Labels["device"] == "":
		return ofStates[f.Alert] && o.Kind == Port && o.Compute && o.Class == Unknown
	case !is("device", o.device), o.Kind == Cage && !ofModule(f.Alert):
		return false
	case o.netdev != "" && f.Labels["netdev"] != "" && !is("netdev", o.netdev):
		return false
	case f.Labels["port"] == "":
		return true
	}
	return is("port", o.port)
}

// Unknowns returns the compute objects of which it is unknown whether they are in order: a host with one is not ok.
func Unknowns(objects []Object) (out []Object) {
	for _, o := range objects {
		if o.Compute && o.Class == Unknown {
			out = append(out, o)
		}
	}
	return out
}

// Noun returns what an object is, in counts and lists: compute port, NIC, GPU.
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

// Group are the objects of one kind, class and reason.
type Group struct {
	Noun, Reason string
	Class        Class
	Names        []string
}

// Groups returns the objects, those that are out of order first.
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
// none of its kind has a link)". Cages that are in order are left out. It is empty without objects.
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
			part += fmt.Sprintf(" (%s)", few(slices.Sorted(maps.Keys(reasons))))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// few joins at most two reasons.
func few(reasons []string) string {
	if n := len(reasons) - 2; n > 0 {
		return strings.Join(reasons[:2], "; ") + fmt.Sprintf("; %d other reasons", n)
	}
	return strings.Join(reasons, "; ")
}
