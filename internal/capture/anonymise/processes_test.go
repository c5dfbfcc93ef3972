package anonymise

import (
	"slices"
	"testing"

	"rdma_exporter/internal/capture"
)

// TestAnonymiseProcess: settings of the site are removed. A pod and a container have one pseudonym in all processes.
func TestAnonymiseProcess(t *testing.T) {
	const (
		pod, otherPod = "4dc3109b-e593-4fae-9077-8e4835b180e1", "0f1e2d3c-4b5a-4968-8776-655443322110"
		container     = "b83fd250a1c4"
	)
	a := &capture.Archive{Meta: capture.Meta{Hostname: "gpu-1"}, Rounds: []capture.Round{{Entries: []capture.Entry{
		{Path: "processes/7", Data: []byte(
			"command: ann's job\nverbs: uverbs0\nsettings: read\nconf_NCCL_CONF_X: /home/ann\nconf_NCCL_IB_TC: 106\nenv_NCCL_COMM_ID: gpu-9:5000\nenv_NCCL_IB_HCA: =mlx5_0:1\nenv_NCCL_NET_GDR_LEVEL: PIX\nenv_NCCL_SOCKET_IFNAME: eth0\nenv_NCCL_TOPO_FILE: /home/ann/topo.xml\nenv_NCCL_X: 10.0.0.9\n",
		)},
		{Path: "processes/8", Data: []byte("job: kubernetes/" + pod + "\ncontainer: " + container + "\n")},
		{Path: "processes/9", Data: []byte("job: kubernetes/" + pod + "\n")},
		{Path: "processes/10", Data: []byte("job: kubernetes/" + otherPod + "\ncontainer: 00112233aabb\n")},
		{Path: "processes/11", Data: []byte("job: kubernetes/ann\ncontainer: ann\n")},
		{Path: "processes/12", Data: []byte("job: slurm/77\nuser: ann\n")},
	}}}}
	Archive(a)
	var got []string
	for _, e := range a.Rounds[0].Entries {
		got = append(got, string(e.Data))
	}
	want := []string{
		"command: x\nverbs: uverbs0\nenv_NCCL_IB_HCA: =mlx5_0:1\nenv_NCCL_NET_GDR_LEVEL: PIX\nenv_NCCL_SOCKET_IFNAME: eth0\nsettings: read\nconf_NCCL_IB_TC: 106\n",
		"job: kubernetes/00000002-0000-4000-b000-000000000000\ncontainer: 000000000002\n",
		"job: kubernetes/00000002-0000-4000-b000-000000000000\n",
		"job: kubernetes/00000001-0000-4000-b000-000000000000\ncontainer: 000000000001\n",
		"job: x\ncontainer: 000000000003\n",
		"job: slurm/77\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
