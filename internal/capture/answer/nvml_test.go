package answer

import (
	"bytes"
	"reflect"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// gpuText is an entry with all lines.
const gpuText = `uuid: GPU-7975f855-e9d0-915f-3654-32c90a1bfdf8
pci_address: 0000:1b:00.0
model: NVIDIA H200
serial: 1652823055000
compute_capability: 9.0
pcie_generation: 5
pcie_max_generation: 5
pcie_width: 16
pcie_max_width: 16
nvlinks: 18
nvlinks_up: 17
c2c_links: 0
processes: 4711 4712
last_xid: 74
recovery_action: 1
temperature: 58
power: 612.5
utilization: 0.37
memory_used: 1073741824
memory_total: 150754820096
bar1_used: 2097152
bar1_total: 274877906944
throttle: 4
pcie_transmit_bytes: 100
pcie_receive_bytes: 200
pcie_replays: 0
nvlink_transmit_bytes: 1024
nvlink_receive_bytes: 2048
xid_events: 3
nvlink_errors_replay: 5
nvlink_errors_recovery: 0
fabric_state: 3
fabric_status: 0
fabric_health: 2
fabric_summary: 1
fabric_cluster: 0d1e2f30-0000-1111-2222-333344445555
fabric_clique: 7
rows_correctable: 1
rows_uncorrectable: 2
rows_pending: true
rows_failed: false
`

func TestAnswersOfNVML(t *testing.T) {
	g, err := Decode[accel.GPU]("x", []byte(gpuText))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Encode(g)); got != gpuText {
		t.Errorf("%s\nwant\n%s", got, gpuText)
	}
	v := reflect.ValueOf(g)
	for i := range v.NumField() {
		// Those are from the path and from sysfs.
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Index" && name != "NUMANode" {
			t.Errorf("an entry has no %s", name)
		}
	}
	for _, text := range []string{
		"", "uuid: GPU-1\n", "processes: \n", "fabric_state: 1\nfabric_status: 0\nfabric_clique: 0\n",
	} {
		g, err := Decode[accel.GPU]("x", []byte(text))
		if got := string(Encode(g)); err != nil || got != text {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	for _, text := range []string{
		"nvlinks", "nvlinks: many\n", "processes: 1 x\n", "power: \n", "rows_pending: 2\n",
		"nvlink_errors_x: -1\n", "fabric_state: x\n",
	} {
		if _, err := Decode[accel.GPU]("x", []byte(text)); access.ReasonOf(err) != access.Malformed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzGPU(f *testing.F) {
	f.Add([]byte(gpuText))
	f.Add([]byte("nvlinks: many\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Decode[accel.GPU]("x", data)
		if err != nil {
			return
		}
		text := Encode(g)
		again, err := Decode[accel.GPU]("x", text)
		if err != nil || !bytes.Equal(Encode(again), text) {
			t.Errorf("%q is written as %q, and then as %q (%v)", data, text, Encode(again), err)
		}
	})
}
