package expect

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/role"
)

// acceptable returns a host after a change: mlx5_0 is unchanged, mlx5_1 is slower, mlx5_2 is down, mlx5_3 is missing,
// mlx5_4 and mlx5_5 have exchanged names.
func acceptable() *Memory {
	t0 := time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)
	m := NewMemory(Data{})
	function := func(i int, name string) FunctionRecord {
		return FunctionRecord{
			Device: name, PCIAddress: fmt.Sprintf("0000:%d0:00.0", i),
			NodeGUID: fmt.Sprintf("b83f:d203:0050:%04x", i+1), Driver: "mlx5_core",
		}
	}
	of := func(f FunctionRecord, l Link) NamedLink {
		l.ID = f.key() + "/1"
		return NamedLink{Link: l, Device: f.Device, Port: 1}
	}
	var before []FunctionRecord
	var links []NamedLink
	for i := range 6 {
		f := function(i, fmt.Sprintf("mlx5_%d", i))
		before, links = append(before, f), append(links, of(f, usualLink(400, 4)))
		m.Learn(f.key()+"/1", RoleRecord{Device: f.Device, Port: 1, Verdict: role.Verdict{Role: pci.Compute}})
	}
	m.See(t0, "one", before)
	m.Observe(t0, links)
	now := slices.Delete(slices.Clone(before), 3, 4)
	now[3].Device, now[4].Device = "mlx5_5", "mlx5_4"
	links = nil
	for i, f := range now {
		links = append(
			links,
			of(f, [...]Link{usualLink(400, 4), usualLink(200, 2), {}, usualLink(400, 4), usualLink(400, 4)}[i]),
		)
	}
	m.See(t0.Add(time.Hour), "two", now)
	m.Observe(t0.Add(time.Hour), links)
	return m
}

// text returns the accepted state as lines, for comparison.
func (a Accepted) text() (out []string) {
	for _, l := range a.Links {
		out = append(out, fmt.Sprintf("link %s/%d", l.Device, l.Port))
	}
	for _, r := range a.Roles {
		out = append(out, fmt.Sprintf("role %s/%d", r.Device, r.Port))
	}
	for _, f := range a.Functions {
		out = append(out, "device "+f.Device)
	}
	return out
}

// TestAccept: all differences are discarded, or the named ones; a dry run returns the same and changes nothing.
func TestAccept(t *testing.T) {
	differs := []string{
		"link mlx5_1/1", "link mlx5_2/1", "link mlx5_3/1", "device mlx5_3", "device mlx5_5", "device mlx5_4",
	}
	for name, c := range map[string]struct {
		names   []string
		want    []string
		unknown []string
		left    []string // remaining differences
	}{
		"all":                {nil, differs, nil, nil},
		"a slower one":       {[]string{"mlx5_1"}, differs[:1], nil, differs[1:]},
		"a port":             {[]string{"mlx5_2/1"}, differs[1:2], nil, append(slices.Clone(differs[:1]), differs[2:]...)},
		"one that is gone":   {[]string{"mlx5_3"}, []string{"link mlx5_3/1", "device mlx5_3"}, nil, append(slices.Clone(differs[:2]), differs[4:]...)},
		"by its PCI address": {[]string{"0000:30:00.0"}, []string{"link mlx5_3/1", "device mlx5_3"}, nil, append(slices.Clone(differs[:2]), differs[4:]...)},
		"one as it was":      {[]string{"mlx5_0"}, []string{"link mlx5_0/1"}, nil, differs},
		"unknown":            {[]string{"mlx5_9", "mlx5_1"}, differs[:1], []string{"mlx5_9"}, differs[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			m := acceptable()
			before := m.Data()
			planned, unknown, err := m.Accept(c.names, true)
			if err != nil || !reflect.DeepEqual(planned.text(), c.want) || !slices.Equal(unknown, c.unknown) {
				t.Errorf("planned %q, unknown %q, %v; want %q, %q", planned.text(), unknown, err, c.want, c.unknown)
			}
			if !reflect.DeepEqual(m.Data(), before) {
				t.Error("a dry run has changed what is remembered")
			}
			done, _, err := m.Accept(c.names, false)
			if err != nil || !reflect.DeepEqual(done, planned) {
				t.Errorf("accepted %+v, planned %+v, %v", done, planned, err)
			}
			left, _, err := m.Accept(nil, true)
			if err != nil || !reflect.DeepEqual(left.text(), c.left) {
				t.Errorf("left %q, want %q, %v", left.text(), c.left, err)
			}
		})
	}
	if _, _, err := NewMemory(acceptable().Data()).Accept(nil, false); !errors.Is(err, ErrNotRead) {
		t.Errorf("before a round: %v", err)
	}
}

// TestAcceptAsShown: a name with characters that lists replace can be accepted in both spellings.
func TestAcceptAsShown(t *testing.T) {
	for _, name := range []string{"mlx5\n\x1b0", "mlx5\u25a1\u25a10"} {
		m := NewMemory(Data{})
		f := FunctionRecord{Device: "mlx5\n\x1b0", PCIAddress: "0000:10:00.0", Driver: "mlx5_core"}
		m.See(time.Unix(0, 0), "one", []FunctionRecord{f})
		m.See(time.Unix(60, 0), "two", []FunctionRecord{})
		a, unknown, err := m.Accept([]string{name}, false)
		if err != nil || len(unknown) > 0 || len(a.Functions) != 1 || len(m.Data().Functions) != 0 {
			t.Errorf("%q: %+v, unknown %q, %v", name, a, unknown, err)
		}
	}
}
