package hwcounters

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/internal/snapshot/wire"
)

// On mlx5 counter 0 has to be read first for the others to come from the kernel's cache.
func TestHWOrder(t *testing.T) {
	for in, want := range map[string]string{
		"":         "",
		"lifespan": "",
		"duplicate_request lifespan out_of_buffer rx_write_requests": "rx_write_requests duplicate_request out_of_buffer",
		"rx_write_requests":                                                  "rx_write_requests",
		"a rx_write_requests vport_rx_write_requests":                        "rx_write_requests vport_rx_write_requests a",
		"vport_out_of_buffer vport_rx_read_requests vport_rx_write_requests": "vport_rx_write_requests vport_out_of_buffer vport_rx_read_requests",
		"a b c":                             "a b c",
		"lifespan lifespan_max my_lifespan": "lifespan_max my_lifespan",
	} {
		names := strings.Fields(in)
		before := slices.Clone(names)
		if got := strings.Join(hwOrder(names), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if !slices.Equal(names, before) {
			t.Errorf("the listing, which is shared, was changed to %q", names)
		}
	}
}

func TestStatName(t *testing.T) {
	for in, want := range map[string]string{
		"out_of_buffer": "out_of_buffer", "SwLinkDown,32": "SwLinkDown", "RNR sent": "RNR_sent",
		"Nak Sequence Error Implied": "Nak_Sequence_Error_Implied", "": "",
	} {
		if got := statName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestWanted(t *testing.T) {
	for _, name := range []string{"SwLinkDown,32", "TxPkt", "RcResend", "XmitDscd,32", "RnrNak"} {
		if !wanted("hfi1", name) {
			t.Errorf("hfi1 %s", name)
		}
	}
	for _, name := range []string{"TxPktVL0", "RcvHdrOvr12", "DRIVER_Errors", "SDmaInt0"} {
		if wanted("hfi1", name) {
			t.Errorf("hfi1 has hundreds like %s", name)
		}
		if !wanted("mlx5_core", name) {
			t.Errorf("of another driver, %s is passed through", name)
		}
	}
}

func TestHWFilesAreReadInOrder(t *testing.T) {
	r := collectortest.ReaderOf(t,
		"-- sys/hw_counters/a --\n1\n-- sys/hw_counters/b !EIO --\n-- sys/hw_counters/lifespan --\n10\n-- sys/hw_counters/rx_write_requests --\n3\n")
	st := &hwState{}
	got := st.files(r, &hwDir{path: "sys/hw_counters"})
	want := []wire.Stat{{Name: "rx_write_requests", Value: 3}, {Name: "a", Value: 1}}
	if !slices.Equal(got, want) || len(r.Issues) != 1 || r.Issues[0].Reason != "io" {
		t.Errorf("%v, %v", got, r.Issues)
	}
	r.Issues = nil
	if got := st.files(r, &hwDir{path: "sys/no-such"}); got != nil || len(r.Issues) != 0 {
		t.Errorf("a port without statistics: %v, %v", got, r.Issues)
	}
}
