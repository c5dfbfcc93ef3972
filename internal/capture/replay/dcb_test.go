package replay

import (
	"reflect"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/test/archives"
)

func TestDCBAppsArePlayedInOrder(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- dcb/eth0/ieee --\napps: 2\napp_dscp_3: 26 24\n"))
	want := []dcb.App{{Selector: 5, Priority: 3, Protocol: 24}, {Selector: 5, Priority: 3, Protocol: 26}}
	if got, err := p.IEEE(t.Context(), "eth0"); err != nil || !reflect.DeepEqual(got.Apps, want) {
		t.Errorf("not in order: %+v, %v", got.Apps, err)
	}
}

func TestDCBIsPlayedAndRecorded(t *testing.T) {
	const answered = "dcbx: 13\npfc_capability: 8\npfc_enabled: 0x28\npfc_mbc: 1\npfc_delay: 7\npfc_requests: 0 0 0 12 0 0 0 0\n" +
		"pfc_indications: 0 0 0 3 0 0 0 0\napps: 0\n"
	text := archives.Header + "-- dcb/eth0/ieee --\n" + answered + "-- dcb/eth1/ieee !EOPNOTSUPP --\n"
	p := play(t, archives.Parse(t, text))
	rec := NewRecorder(p.Host())
	h := rec.Host()
	if c, err := h.DCB.IEEE(t.Context(), "eth0"); err != nil || c.PFC.Enabled != 0x28 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := h.DCB.IEEE(t.Context(), "eth1"); access.ReasonOf(err) != access.Unsupported {
		t.Error(err)
	}
	if _, err := h.DCB.IEEE(t.Context(), "eth2"); !access.IsAbsent(err) {
		t.Error(err)
	}
	rec.EndRound(0)
	a := rec.Archive(capture.Meta{})
	if got := a.Rounds[0].Entries; len(got) != 2 || string(got[0].Data) != answered || got[1].Errno != syscall.EOPNOTSUPP {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(archives.Format(t, a), "-- dcb/eth1/ieee !") {
		t.Error("the error is not recorded")
	}
}
