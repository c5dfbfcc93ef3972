package answer

import (
	"reflect"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
)

// dcbText is a configuration as stored in captures.
const dcbText = `dcbx: 13
pfc_capability: 8
pfc_enabled: 0x28
pfc_mbc: 1
pfc_delay: 7
pfc_requests: 0 0 0 12 0 18446744073709551615 0 0
pfc_indications: 0 0 0 3 0 0 0 0
ets_willing: 1
ets_capability: 8
ets_cbs: 0
ets_bandwidth: 40 60 0 0 0 0 0 0
ets_algorithm: 2 2 0 255 0 0 0 0
ets_priority_class: 1 0 0 1 0 0 0 2
buffer_total: 1027728
buffer_sizes: 20016 156096 0 0 0 0 0 0
buffer_priority: 0 0 0 1 0 1 0 0
trust: dscp pcp 9
apps: 5
app_ethertype_3: 35093
app_dscp_3: 24 26
app_9_0: 1
app_pcp_7: 7
`

func TestAnswersOfDCB(t *testing.T) {
	whole := dcb.Config{
		DCBX: num(13),
		PFC: &dcb.PFC{
			Capability: 8, Enabled: 0x28, MBC: 1, Delay: 7, Requests: dcb.PerPriority{3: 12, 5: 1<<64 - 1},
			Indications: dcb.PerPriority{3: 3},
		},
		ETS: &dcb.ETS{
			Willing: 1, Capability: 8, Bandwidth: dcb.PerPriority{40, 60}, Algorithm: dcb.PerPriority{2, 2, 0, 255},
			TrafficClass: dcb.PerPriority{0: 1, 3: 1, 7: 2},
		},
		Buffer: &dcb.Buffer{Buffer: dcb.PerPriority{3: 1, 5: 1}, Sizes: dcb.PerPriority{20016, 156096}, Total: 1027728},
		Trust:  []uint8{5, 255, 9},
		Apps: []dcb.App{
			{Selector: 1, Priority: 3, Protocol: 35093},
			{Selector: 5, Priority: 3, Protocol: 24},
			{Selector: 5, Priority: 3, Protocol: 26},
			{Selector: 9, Protocol: 1},
			{Selector: 255, Priority: 7, Protocol: 7},
		},
	}
	for _, c := range []struct {
		name   string
		config dcb.Config
		text   string
	}{
		{"all", whole, dcbText},
		{"no application entry", dcb.Config{Apps: []dcb.App{}}, "apps: 0\n"},
		{"nothing", dcb.Config{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Encode(c.config)); got != c.text {
				t.Errorf("%s\nwant\n%s", got, c.text)
			}
			if got, err := Decode[dcb.Config]("x", []byte(c.text)); err != nil || !reflect.DeepEqual(got, c.config) {
				t.Errorf("%q: %+v, %v", c.text, got, err)
			}
		})
	}
	got, err := Decode[dcb.Config]("x", []byte("of_a_later_version: 3\npfc_more: x\ndcbx: 1\n"))
	if err != nil || got.DCBX == nil {
		t.Errorf("unknown line: %+v, %v", got, err)
	}
}

func TestGarbledAnswersOfDCB(t *testing.T) {
	for _, text := range []string{
		"dcbx\n", "dcbx: x\n", "pfc_enabled: on\n", "pfc_requests: 1 2 3\n", "pfc_requests: 1 2 3 4 5 6 7 8 9\n",
		"ets_bandwidth: 1 2 3 4 5 6 7 x\n",
		"app_dscp: 26\n", "app_dscp_8: 26\n", "app_what_3: 26\n", "app_dscp_3: 65536\n", "trust: 256\n",
	} {
		if got, err := Decode[dcb.Config]("dcb/eth0/ieee", []byte(text)); access.ReasonOf(err) != access.Malformed ||
			!reflect.DeepEqual(got, dcb.Config{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzDecodeDCB(f *testing.F) {
	f.Add([]byte(dcbText))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode[dcb.Config]("x", data)
		if err != nil {
			return
		}
		if again, err := Decode[dcb.Config]("x", Encode(c)); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v became %+v, %v", c, again, err)
		}
	})
}
