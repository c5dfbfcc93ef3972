//go:build e2e

package netns

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

// netdevs adds, removes and renames interfaces: veth pairs, each with a peer that keeps its name.
type netdevs struct {
	*testing.T
}

func (d netdevs) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d netdevs) add(name string) {
	d.Helper()
	d.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}))
}

func (d netdevs) remove(name string) {
	d.Helper()
	l, err := netlink.LinkByName(name)
	d.must(err)
	d.must(netlink.LinkDel(l))
}

func (d netdevs) rename(from, to string) {
	d.Helper()
	l, err := netlink.LinkByName(from)
	d.must(err)
	d.must(netlink.LinkSetName(l, to))
}

// changes are what can happen to the interfaces of a function, one after the other.
var changes = []struct {
	name string
	do   func(netdevs)
}{
	{"added", func(d netdevs) { d.add("same0") }},
	{"another added", func(d netdevs) { d.add("same1") }},
	{"renamed", func(d netdevs) { d.rename("same0", "same2") }},
	{"made again under its name", func(d netdevs) { d.remove("same2"); d.add("same2") }},
	{"names exchanged", func(d netdevs) { d.rename("same1", "x"); d.rename("same2", "same1"); d.rename("x", "same2") }},
	{"one in place of another", func(d netdevs) { d.add("same3"); d.remove("same1") }},
	{"removed", func(d netdevs) { d.remove("same2") }},
	{"the last removed", func(d netdevs) { d.remove("same3") }},
}

// TestSame: a directory of interfaces is the same until one of them changes, as often as it is asked.
func TestSame(t *testing.T) {
	files := ethtoolHost(t).Files
	const dir = "sys/devices/virtual/net"
	same := func() bool {
		is := files.Same(dir)
		if !is { // as its callers do
			if _, err := files.List(dir); err != nil {
				t.Fatal(err)
			}
			files.Same(dir)
		}
		return is
	}
	same()
	for _, c := range changes {
		for range 3 {
			if !same() {
				t.Fatalf("before %q: not the same", c.name)
			}
		}
		if c.do(netdevs{t}); same() {
			t.Errorf("%s: the same", c.name)
		}
	}
}

// TestIdentities: the entries of a class lead to the same directories as Identity does, after each change. This is how
// an RDMA device that registered again is found.
func TestIdentities(t *testing.T) {
	files := ethtoolHost(t).Files
	const class = "sys/class/net"
	check := func(after string) []uint64 {
		t.Helper()
		names, ids, err := files.Identities(class)
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		var want []uint64
		for _, name := range names {
			id, err := files.Identity(filepath.Join(class, name))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, id)
		}
		if listed, err := files.List(class); err != nil || !slices.Equal(names, listed) || !slices.Equal(ids, want) {
			t.Errorf("%s: %v %v, want %v %v, %v", after, names, ids, listed, want, err)
		}
		return ids
	}
	before := check("at first")
	for _, c := range changes {
		opened := files.Opened()
		if _, again, err := files.Identities(class); err != nil || !slices.Equal(again, before) || files.Opened() != opened {
			t.Errorf("before %q: %v, %v, %d paths opened", c.name, again, err, files.Opened()-opened)
		}
		c.do(netdevs{t})
		now := check(c.name)
		if slices.Equal(now, before) {
			t.Errorf("%s: the same", c.name)
		}
		before = now
	}
}
