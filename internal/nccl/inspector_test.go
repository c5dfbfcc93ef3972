package nccl

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// recordLine returns a record as the plugin writes it (inspector_json.cc).
func recordLine(id, name string, rank, pid int, second int64, operation string, bytes, rate int) string {
	return fmt.Sprintf(`{"header":{"id":"%s","comm_name":"%s","rank":%d,"n_ranks":16,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"gpu-1","pid":%d},`+
		`"coll_perf":{"coll":"%s","coll_sn":1407,"coll_msg_size_bytes":%d,"coll_exec_time_us":61974,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.21,"coll_busbw_gbs":%d.5}}`+"\n",
		id, name, rank, second*1e6, pid, operation, bytes, rate)
}

const pointToPoint = `{"header":{"id":"0x9","comm_name":"PP","rank":0,"n_ranks":4,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1748030377748202,"hostname":"gpu-1","pid":11},` +
	`"p2p_perf":{"p2p":"Send","p2p_sn":3,"p2p_peer":1,"p2p_msg_size_bytes":1048576,"p2p_exec_time_us":1154,"p2p_timing_source":"kernel_gpu","p2p_algobw_gbs":4.5,"p2p_busbw_gbs":4.5}}` + "\n"

// TestRatesOfDumps: the operation that moves most data in each communicator, of the last ten minutes of its records.
func TestRatesOfDumps(t *testing.T) {
	got := RatesOfDumps(map[int][]byte{
		11: []byte(recordLine("0x7", "DP", 0, 11, 1000, "AllReduce", 1<<30, 900) +
			recordLine(
				"0x7",
				"DP",
				0,
				11,
				5000,
				"AllReduce",
				1<<30,
				480,
			) + recordLine("0x7", "DP", 0, 11, 5001, "AllReduce", 1<<30, 500) +
			recordLine("0x7", "DP", 0, 11, 5002, "AllReduce", 1<<30, 470) +
			recordLine(
				"0x7",
				"DP",
				0,
				11,
				5003,
				"AllGather",
				4096,
				3,
			) + recordLine("0x7", "DP", 0, 99, 5003, "AllReduce", 1<<40, 1) +
			pointToPoint + `{"header":{"id":"0x7","comm_na`),
		12: []byte(recordLine("0x7", "DP", 1, 12, 5004, "AllReduce", 1<<30, 212) + recordLine("0x8", "unknown", 1, 12, 5004, "Broadcast", 8192, 7) + "odd\n[]\n"),
	})
	want := []Rates{
		{"0x8", 16, "Broadcast", 8192, 1, 7.5, RankRate{1, 7.5}, RankRate{1, 7.5}, time.Unix(5004, 0).UTC()},
		{"DP", 16, "AllReduce", 1 << 30, 2, 212.5, RankRate{1, 212.5}, RankRate{0, 480.5}, time.Unix(5004, 0).UTC()},
		{"PP", 4, "Send", 1 << 20, 1, 4.5, RankRate{0, 4.5}, RankRate{0, 4.5}, time.UnixMicro(1748030377748202).UTC()},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	hostile := RatesOfDumps(map[int][]byte{
		1: []byte(recordLine("0x2", "last\\u001b[31m"+strings.Repeat("é", dumpNameSize), 0, 1, 1, "AllReduce", 1, 1)),
	})
	if len(hostile) != 1 || !strings.HasPrefix(hostile[0].Communicator, "last [31m") ||
		len(hostile[0].Communicator) > dumpNameSize {
		t.Errorf("%+v", hostile)
	}
}

func TestPIDOfDump(t *testing.T) {
	for name, want := range map[string]int{
		"gpu-1-pid11.log": 11, "trainer-0-pid7.log": 7, "gpu-2-pid11.log": 0, "gpu-1-pidx.log": 0,
		"gpu-1-pid11.log.gz": 0, "": 0,
	} {
		if got := PIDOfDump(name, []string{"gpu-1", "trainer-0"}); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

// FuzzDumps: rates are of operations that are in the text.
func FuzzDumps(f *testing.F) {
	f.Add([]byte(recordLine("0x7", "DP", 0, 11, 5000, "AllReduce", 1<<30, 480) + pointToPoint))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, r := range ratesOf(recordsOf(text, 11)) {
			if r.Here < 1 || r.Lowest.Rate > r.Median || r.Median > r.Highest.Rate || r.Operation == "" {
				t.Errorf("%+v", r)
			}
		}
	})
}
