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

GPUs are judged for the NCCL of the process that holds them, where the exporter may see processes (CAP_SYS_PTRACE and
CAP_DAC_READ_SEARCH, in their PID namespace); else a current NCCL is supposed. Its settings are those of its environment, then of
` + "`NCCL_CONF_FILE` or `~/.nccl.conf`, then of `/etc/nccl.conf`" + `, and its topology that of ` + "`NCCL_TOPO_FILE`" + `, all as it sees them itself. Nothing else
of these files is kept. ` + "`rdma_exporter topo --nccl-version 2.22.3 --nccl-env NCCL_NET_GDR_LEVEL=PHB`" + ` asks for another. In a virtual machine distances come from ` + "`NCCL_TOPO_FILE`" + ` or ` + "`/var/run/nvidia-topologyd/virtualTopology.xml`" + `.

## Reasons

| reason | in words | what to do |
|---|---|---|
`)
	for _, r := range gdr.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r, r.Words(), cmp.Or(r.Remedy(), "–"))
	}
	b.WriteString(inUse)
	for _, r := range gdr.UseReasons() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r, r.Words(), cmp.Or(r.Remedy(), "–"))
	}
	return []byte(b.String())
}

const inUse = `
## In use

What is decided is one thing, what a job does another: ` + "`rdma_gdr_gpu_transport{state}`" + ` says of each GPU that a process with NCCL holds, or
one with an RDMA device, how its data goes to other hosts now.

| state | needs all of |
|---|---|
| ` + "`gdr`" + ` | NCCL, an RDMA device, a decision for the direct way, memory of GPUs that is registered with NICs, and not by others alone as far as memory regions tell |
| ` + "`staging`" + ` | NCCL, its settings read, a decision for the direct way, more than 5 % of the rate on a port of the GPU's best NIC (as its PMA counters tell), no word of its scheduler for a single node, no library beside it that moves caches, and both records of registered GPU memory read and empty |
| ` + "`tcp`" + ` | NCCL, no RDMA device, several nodes by its scheduler's word, no NVLink domain of several hosts, more than 1 Gb/s on a network interface that belongs to no RDMA device |
| ` + "`host_only`" + ` | an RDMA device and no NCCL, or a single node by its scheduler's word |
| ` + "`unknown`" + ` | none of these, or something that cannot be read |

The records are the use of the peer memory module (the reference count of ` + "`nvidia_peermem`, `memory_peers`" + ` of MLNX_OFED up to 23.10) and who
is attached to DMA-BUFs of GPUs (` + "`/sys/kernel/debug/dma_buf/bufinfo`" + `). The kernel takes the locks of all DMA-BUFs to tell the second, so that
it is not asked unless ` + "`--collector.gdr.bufinfo`" + ` permits it, and then once in ten minutes at most and while nothing else is missing for
` + "`staging`" + `. Where there can be no DMA-BUF (the GPU driver, the kernel or the NIC's driver cannot, or ` + "`NCCL_DMABUF_ENABLE=0`" + `) there is none. Rates
are those of the last minute. A variable that is missing in the environment says nothing; neither record tells whose memory it is.

| reason | in words | what to do |
|---|---|---|
`
