package infiniband

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/snapshot"
)

func TestPortRanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		field func(*snapshot.Port) **uint64
		value uint64
		kept  bool
	}{
		{"state 0 changes nothing", func(p *snapshot.Port) **uint64 { return &p.State }, 0, false},
		{"DOWN", func(p *snapshot.Port) **uint64 { return &p.State }, 1, true},
		{"ACTIVE_DEFER", func(p *snapshot.Port) **uint64 { return &p.State }, 5, true},
		{"a state of no standard", func(p *snapshot.Port) **uint64 { return &p.State }, 6, false},
		{"Omni-Path's test", func(p *snapshot.Port) **uint64 { return &p.PhysicalState }, 11, true},
		{"5 bits of a physical state", func(p *snapshot.Port) **uint64 { return &p.PhysicalState }, 16, false},
		{"no LID yet", func(p *snapshot.Port) **uint64 { return &p.LID }, 0xffff, true},
		{"a LID of all ones", func(p *snapshot.Port) **uint64 { return &p.LID }, math.MaxUint64, false},
		{"an SM LID of all ones", func(p *snapshot.Port) **uint64 { return &p.SMLID }, math.MaxUint64, false},
		{"LMC", func(p *snapshot.Port) **uint64 { return &p.LMC }, 7, true},
		{"4 bits of LMC", func(p *snapshot.Port) **uint64 { return &p.LMC }, 8, false},
		{"capabilities", func(p *snapshot.Port) **uint64 { return &p.Capabilities }, 0x2651e84a, true},
		{"both masks", func(p *snapshot.Port) **uint64 { return &p.Capabilities }, 0x13_a651_e848, true},
		{"capabilities of all ones", func(p *snapshot.Port) **uint64 { return &p.Capabilities }, math.MaxUint32, false},
		{"64 ones", func(p *snapshot.Port) **uint64 { return &p.Capabilities }, math.MaxUint64, false},
		{"17 bits of CapabilityMask2", func(p *snapshot.Port) **uint64 { return &p.Capabilities }, 1 << 48, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p := collectortest.ReadsOf(t, "-- x --\n"), snapshot.Port{}
			*c.field(&p) = &c.value
			inRange(r, portOne, &p)
			if kept := *c.field(&p) != nil; kept != c.kept || len(r.Issues) != 1 && !kept || len(r.Issues) != 0 && kept {
				t.Errorf("kept: %v, issues: %v", kept, r.Issues)
			}
		})
	}
}

func TestIdentityTexts(t *testing.T) {
	const dir = sysfs.ClassDir + "/mlx5_0"
	for _, c := range []struct{ file, text, want string }{
		{"fw_ver", "28.43.2566", "28.43.2566"},
		{"fw_ver", "231.0.162.0", "231.0.162.0"},
		{"fw_ver", strings.Repeat("9", 1000), ""},
		{"fw_ver", "\x01\x02", ""},
		{"node_guid", "b83f:d203:0050:a1c0", "b83f:d203:0050:a1c0"},
		{"node_guid", "b83f:d203:0050", ""},
		{"board_id", "ChipABI 3.0, ChipRev 7.17, SW Compat 3", "ChipABI 3.0, ChipRev 7.17, SW Compat 3"},
		{"board_id", "MT_\xff", ""},
		{"hca_type", strings.Repeat("M", 129), ""},
	} {
		t.Run(fmt.Sprintf("%s %.12q", c.file, c.text), func(t *testing.T) {
			r := collectortest.ReadsOf(t, "-- "+dir+"/node_type --\n1: CA\n"+"-- "+dir+"/"+c.file+" --\n"+c.text+"\n")
			d := readIdentity(r, collectortest.DeviceOf(t, r.Reader, shared.NewRoster(shared.Options{}).Of))
			got := map[string]string{
				"fw_ver": d.Firmware, "node_guid": d.NodeGUID, "board_id": d.BoardID, "hca_type": d.HCAType,
			}[c.file]
			bad := 0
			for _, i := range r.Issues {
				if i.Reason == "malformed" {
					bad++
				}
			}
			if got != c.want || (bad == 1) != (c.want == "") {
				t.Errorf("%q, want %q; issues %v", got, c.want, r.Issues)
			}
		})
	}
}
