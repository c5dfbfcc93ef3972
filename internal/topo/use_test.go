package topo

import (
	"encoding/json"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/terminal"
)

// busy returns a host with two GPUs of a job over sockets, and one GPU of an unnamed job whose settings select RoCE v1.
func busy() *snapshot.Node {
	first := &accel.Process{
		PID: 11, Command: "python3", Job: "slurm/77", GPUs: []int{0}, HasNCCL: true, NCCL: "2.27.3",
		Conf: map[string]string{"NCCL_IB_DISABLE": "1"},
	}
	second := &accel.Process{PID: 12, Command: "python3", Job: "slurm/77", GPUs: []int{1}, HasNCCL: true}
	other := &accel.Process{
		PID: 13, GPUs: []int{2}, Verbs: []string{"uverbs0"}, HasNCCL: true, Regions: u(70), RegionBytes: u(4096),
		DMABUFs: []accel.DMABUFs{{Exporter: "nv_dmabuf", Buffers: 3, Bytes: 25 << 19}},
	}
	gpu := func(index string, t *accel.GDRTransport) accel.GDRGPU {
		return accel.GDRGPU{
			Index: index, PCIAddress: "0000:1" + index + ":00.0", Root: "pci0000:10",
			Best: accel.GDRPair{NIC: -1, Reason: "no_active_nic"}, Transport: t,
		}
	}
	tcp := func(p *accel.Process) *accel.GDRTransport {
		return &accel.GDRTransport{State: "tcp", Reason: "ib_disabled", Words: "words", Remedy: "remedy", Process: p}
	}
	return &snapshot.Node{Setup: &hostdata.Setup{Rows: []hostdata.SetupRow{
		{Domain: "job", Setting: "nccl_ib_disable", Object: "slurm/77", State: hostdata.SetupDiffers, Found: "1", Wanted: "0", Evidence: "several nodes", Remedy: "unset it"},
		{Domain: "job", Setting: "nccl_qps", Object: "slurm/8", State: hostdata.SetupDiffers, Found: "64", Wanted: "1 to 16", Remedy: "export it"},
		{Domain: "job", Setting: "nccl_topo_file", Object: "slurm/77", State: hostdata.SetupUnknown, Wanted: "one of this host", Evidence: "not readable"},
		{Domain: "job", Setting: "nccl_timeout", Object: "slurm/77", State: hostdata.SetupOK, Found: "20", Wanted: "18 to 22"},
		{Domain: "pcie", Setting: "acs", Object: "mlx5_0", State: hostdata.SetupDiffers, Found: "on", Wanted: "off"},
	}}, GDR: &accel.GDR{
		GPUs: []accel.GDRGPU{
			gpu("0", tcp(first)), gpu("1", tcp(second)),
			gpu("2", &accel.GDRTransport{State: "gdr", Reason: "registered", Words: "other words", Process: other}),
			gpu("3", nil),
		},
		Processes: []accel.Process{*first, *second, *other},
		JobGIDs: []accel.GDRJobGID{
			{Device: "mlx5_0", Port: 1, Index: 0, Type: "roce_v1", Process: other},
			{Device: "mlx5_1", Port: 1, Index: 0, Type: "roce_v2", Process: other},
		},
	}}
}

func TestDrawUse(t *testing.T) {
	const want = `
Data path of running jobs
  tcp: data goes through TCP sockets for GPU 0, 1
    words (ib_disabled)
    Process: python3 11, 12, slurm/77
    Action: remedy
  gdr: GPUDirect RDMA in use by GPU 2
    other words (registered)
    Process: 13
  13 keeps 3 DMA-BUFs of GPU memory open (nv_dmabuf), 12.5 MiB
  NCCL_IB_GID_INDEX=0 of process 13 selects a GID of mlx5_0/1 that is RoCE v1, not RoCE v2

Settings of NCCL in running jobs
  slurm/77
    nccl_ib_disable: 1, wanted: 0
      Evidence: several nodes
      Action: unset it
    nccl_topo_file: unknown: not readable
    nccl_timeout: 20
  slurm/8
    nccl_qps: 64, wanted: 1 to 16
      Action: export it
`
	var b strings.Builder
	m := New("gpu-1", busy())
	if err := m.Draw(&b, terminal.Style{}); err != nil || !strings.HasSuffix(b.String(), want) {
		t.Errorf("%v\n%s", err, b.String())
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"transport":{"state":"tcp","reason":"ib_disabled","explanation":"words","remedy":"remedy","pid":11}`,
		`{"pid":11,"command":"python3","job":"slurm/77","gpu_minors":[0],"rdma_nodes":[],"nccl":true,"nccl_version":"2.27.3","settings":{"NCCL_IB_DISABLE":"1"}}`,
		`"rdma_nodes":["uverbs0"],"memory_regions":70,"memory_region_bytes":4096`,
		`"gpu_dmabufs_open":[{"exporter":"nv_dmabuf","buffers":3,"bytes":13107200}]`,
		`"job_settings":[{"job":"slurm/77","setting":"nccl_ib_disable","state":"differs","found":"1","wanted":"0","evidence":"several nodes","remedy":"unset it"},`,
		`"gid_mismatches":[{"device":"mlx5_0","port":1,"gid_index":0,"gid_type":"roce_v1","pid":13}]`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the JSON lacks %s:\n%s", part, text)
		}
	}
}
