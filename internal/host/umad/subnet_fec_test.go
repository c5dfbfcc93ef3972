package umad

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/host"
)

// TestPortFEC: what a port and its agent have is returned, with the minimum number of datagrams. Without a capability
// nothing is queried: the driver of mlx5 answers every attribute of performance management that it does not have with
// PortCounters.
func TestPortFEC(t *testing.T) {
	const pie, counts = "0x33 of 7 after ", "0x1f of 7 at 17 by QP1"
	const extended = 1 << 1
	for _, tt := range []struct {
		name  string
		set   func(*fakeAgent)
		far   bool
		mode  string
		has   map[host.FECCount]bool
		first []string // datagrams
		later []string
	}{
		{
			name: "RS-FEC", set: func(a *fakeAgent) { a.mask, a.caps2[7], a.fec = rsFEC, extended, 4 }, mode: "RS(544,514)",
			has: map[host.FECCount]bool{
				{Name: "corrected_symbols", Lane: 0, Value: 44}: true, {Name: "corrected_symbols", Lane: 3, Value: 56}: true,
				{Name: "corrected_symbols", Lane: -1, Value: 148}: true,
				{Name: "corrected_blocks", Lane: -1, Value: 140}:  true, {Name: "uncorrectable_blocks", Lane: -1, Value: 144}: true,
				{Name: "unknown_blocks", Lane: -1, Value: 16}: true,
			},
			first: []string{"0x15 of 7 after 0 hops", pie + "0 hops", "0x1 of 0 at 17 by QP1", counts},
			later: []string{pie + "0 hops", counts},
		},
		{
			name: "Fire code, of a switch at the far end", far: true,
			set: func(a *fakeAgent) { a.mask, a.caps2[0], a.fec = rsFEC, extended, 1 }, mode: "FC",
			has: map[host.FECCount]bool{
				{Name: "corrected_blocks", Lane: 1, Value: 48}: true, {Name: "uncorrectable_blocks", Lane: 1, Value: 96}: true,
				{Name: "corrected_symbols", Lane: -1, Value: 148}: false,
			},
			first: []string{"0x15 of 7 after 1 hops", "0x15 of 0 after 1 hops", pie + "1 hops", "0x1 of 0 at 17 by QP1", counts},
			later: []string{pie + "1 hops", counts},
		},
		{
			name: "the driver of mlx5", set: func(a *fakeAgent) { a.mask, a.caps2[7], a.fec = extWidth, extended, 13 },
			mode:  "RS(544,514) PLR",
			first: []string{"0x15 of 7 after 0 hops", pie + "0 hops", "0x1 of 0 at 17 by QP1"}, later: []string{pie + "0 hops"},
		},
		{
			name: "no PortInfoExtended", set: func(a *fakeAgent) { a.mask, a.caps2[7] = rsFEC, 1<<4 },
			first: []string{"0x15 of 7 after 0 hops"},
		},
		{
			name:  "no FEC in PortInfoExtended",
			set:   func(a *fakeAgent) { a.mask, a.caps2[7], a.fec, a.noFEC = rsFEC, extended, 2, true },
			first: []string{"0x15 of 7 after 0 hops", pie + "0 hops"}, later: []string{pie + "0 hops"},
		},
		{
			name: "a mode that is reserved", set: func(a *fakeAgent) { a.mask, a.caps2[7], a.fec = rsFEC, extended, 5 },
			first: []string{"0x15 of 7 after 0 hops", pie + "0 hops"}, later: []string{pie + "0 hops"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &fakeAgent{}
			tt.set(a)
			s, at := a.subnet(), &host.Agent{LID: 17, Port: 7, Far: tt.far}
			for _, want := range [][]string{tt.first, tt.later} {
				a.asked = nil
				most := at.FECRequests()
				f, err := s.PortFEC(t.Context(), "mlx5_0", 1, at)
				if err != nil || f.Mode != tt.mode || (len(f.Counts) > 0) != (tt.has != nil) {
					t.Errorf("%+v, %v", f, err)
				}
				for c, has := range tt.has {
					if slices.Contains(f.Counts, c) != has {
						t.Errorf("%+v: %v in %+v", c, !has, f.Counts)
					}
				}
				if !slices.Equal(a.asked, want) {
					t.Errorf("asked %q, want %q", a.asked, want)
				}
				if switches := strings.Count(strings.Join(want, " "), "0x15 of 0"); len(want) > most+switches {
					t.Errorf("%d datagrams announced, %d sent", most, len(want))
				}
				if len(want) > 0 && !a.closed {
					t.Error("the port is still open")
				}
			}
		})
	}
}

func TestPortFECFailures(t *testing.T) {
	for _, attribute := range []uint16{attrPortInfo, portInfoExtended, classPortInfo, extendedSpeeds} {
		a := &fakeAgent{mask: rsFEC, fec: 4, status: map[uint16]uint16{attribute: 3 << 2}}
		a.caps2[1] = 1 << 1
		f, err := a.subnet().PortFEC(t.Context(), "mlx5_0", 1, &host.Agent{LID: 17, Port: 1})
		if err == nil || !strings.Contains(err.Error(), "attribute not supported") || f.Mode != "" || f.Counts != nil {
			t.Errorf("%#x: %+v, %v", attribute, f, err)
		}
	}
}
