package main

import (
	"cmp"
	"fmt"
	"strings"

	"rdma_exporter/internal/gdr"
)

// gpuDirectPage lists the reasons of verdicts on GPUDirect RDMA.
func gpuDirectPage() []byte {
	var b strings.Builder
	b.WriteString(`# GPUDirect RDMA

Whether data of a GPU goes to a NIC directly or through host memory is NCCL's decision, and NCCL says nothing of it. The exporter decides
as NCCL does, for every GPU by its best eligible NIC (` + "`rdma_gdr_gpu_direct`, `rdma_gdr_gpu_info`" + `), and for every pair in
` + "`rdma_exporter topo`" + `. What it needs:

- a mechanism: DMA-BUF (Linux 5.12 or newer, a NIC driver that registers DMA-BUFs, the open GPU kernel modules), or a peer memory module
  (` + "`nvidia_peermem`" + `, with MLNX_OFED or a kernel that supports it);
- nearness: GPU and NIC below one PCIe switch or several (PIX, PXB), or a GPU that is coupled to the NIC's CPU by NVLink-C2C (P2C, NCCL 2.27
  or newer). ` + "`NCCL_NET_GDR_LEVEL`" + ` changes the limit;
- for sending also a GPU of the Ampere generation or newer, NVLink, or a single GPU; ` + "`NCCL_NET_GDR_READ`" + ` overrides that.

GPUs are judged for the NCCL of the process that holds them, with its environment and ` + "`/etc/nccl.conf`" + `, where the exporter may see
processes (CAP_SYS_PTRACE); else a current NCCL is supposed. ` + "`rdma_exporter topo --nccl-version 2.22.3 --nccl-env NCCL_NET_GDR_LEVEL=PHB`" + ` asks
for another. Settings in a job's own ~/.nccl.conf or NCCL_CONF_FILE are not seen, nor is
its NCCL_TOPO_FILE. In a virtual machine distances come from ` + "`NCCL_TOPO_FILE`" + ` or ` + "`/var/run/nvidia-topologyd/virtualTopology.xml`" + `.

## Reasons

| reason | in words | what to do |
|---|---|---|
`)
	for _, r := range gdr.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r, r.Words(), cmp.Or(r.Remedy(), "–"))
	}
	return []byte(b.String())
}
