package anonymise

import (
	"strings"
	"testing"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/archives"
)

func TestAnonymiseGPUs(t *testing.T) {
	const domain, cluster = "7975f855-e9d0-915f-3654-32c90a1bfdf8", "0d1e2f30-0000-1111-2222-333344445555"
	const gpu = "uuid: GPU-" + domain + "\nserial: 1652823055000\nnvlinks_up: 17\nfabric_state: 3\nfabric_status: 0\nfabric_cluster: " +
		cluster + "\nfabric_clique: 7\n"
	a := archives.Parse(t, archives.Header+"-- nvml/gpu/0 --\n"+gpu+
		"-- nvml/gpu/1 --\n"+strings.Replace(gpu, "7975f855", "0175f855", 1)+"-- nvml/gpu/2 --\nserial 17\n"+
		"-- proc/driver/nvidia/gpus/0000:1b:00.0/information --\nGPU UUID: \tGPU-"+domain+"\n-- +15s/nvml/gpu/0 --\n"+gpu)
	Archive(a)
	got := contentsOf(a)
	text := archives.Format(t, a)
	for _, private := range []string{domain, cluster, "1652823055000", "0175f855", "serial 17"} {
		if strings.Contains(text, private) {
			t.Errorf("%s is there still", private)
		}
	}
	first, err := answer.Decode[accel.GPU]("x", []byte(got["0s nvml/gpu/0"]))
	if err != nil {
		t.Fatal(err)
	}
	second, err := answer.Decode[accel.GPU]("x", []byte(got["0s nvml/gpu/1"]))
	if err != nil {
		t.Fatal(err)
	}
	if first.UUID == second.UUID || first.Fabric.Cluster != second.Fabric.Cluster || first.Serial != second.Serial ||
		*first.NVLinksUp != 17 {
		t.Errorf("%+v %+v", first, second)
	}
	if got["15s nvml/gpu/0"] != got["0s nvml/gpu/0"] ||
		!strings.Contains(got["0s proc/driver/nvidia/gpus/0000:1b:00.0/information"], first.UUID) {
		t.Errorf("one GPU has several pseudonyms: %q", got)
	}
	Archive(a)
	archives.Differ(t, archives.Format(t, a), text)
}
