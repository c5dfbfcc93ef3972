package main

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/transport"
)

// gpuDirectPage lists the reasons of verdicts on GPUDirect RDMA.
func gpuDirectPage() []byte {
	var b strings.Builder
	b.WriteString(`# GPUDirect RDMA

NCCL decides whether data of a GPU goes to a NIC directly (GPUDirect RDMA) or through host memory, and does not report the decision. The exporter
reproduces it for every GPU by its best eligible NIC (` + "`rdma_gdr_gpu_direct`, `rdma_gdr_gpu_info`" + `), and for every pair in
` + "`rdma_exporter topo`" + `. Requirements:

- mechanism: DMA-BUF (Linux 5.12 or newer, a NIC driver that registers DMA-BUFs, the open GPU kernel modules, Turing or newer) or a peer memory module
  (` + "`nvidia_peermem`" + `, with MLNX_OFED or a kernel that supports it);
- distance: GPU and NIC below the same PCIe switch or switches (PIX, PXB), or a GPU connected to the NIC's CPU by NVLink-C2C (P2C, NCCL 2.27
  or newer). ` + "`NCCL_NET_GDR_LEVEL`" + ` changes the limit;
- for sending also: a GPU of the Ampere generation or newer, NVLink, or a single GPU. ` + "`NCCL_NET_GDR_READ`" + ` overrides this.

The evaluation uses the NCCL of the process that holds the GPU if the exporter may read processes (CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, in their
PID namespace), else a current NCCL with default settings. Settings come from the environment, then ` + "`NCCL_CONF_FILE` or `~/.nccl.conf`" + `, then
` + "`/etc/nccl.conf`" + `; the topology from ` + "`NCCL_TOPO_FILE`" + `; all in the file system of the process.
` + "`rdma_exporter topo --nccl-version 2.22.3 --nccl-env NCCL_NET_GDR_LEVEL=PHB`" + ` evaluates another version or setting. In a virtual machine distances come from
` + "`NCCL_TOPO_FILE`" + ` or ` + "`/var/run/nvidia-topologyd/virtualTopology.xml`" + `.

AMD GPUs use RCCL, which has the rules of NCCL and other mechanisms. No library of AMD is needed: GPUs are identified by the topology of amdkfd
(` + "`/sys/class/kfd/kfd/topology`" + `), the UUID is the unique ID of amdgpu.

- peer memory client of ROCm: ` + "`amdkfd`" + ` in a list of ` + "`memory_peers`" + `, or the symbols ` + "`ib_register_peer_memory_client` and `kfd_init_peer_direct`" + ` (the amdgpu
  driver of ROCm; the in-tree one has no client);
- DMA-BUF: a NIC driver that registers DMA-BUFs, and a kernel with ` + "`CONFIG_PCI_P2PDMA` and `CONFIG_DMABUF_MOVE_NOTIFY`" + ` (` + "`/boot/config-RELEASE`" + `,
  ` + "`/proc/config.gz`" + `), which RCCL requires. Older versions of RCCL use it only with ` + "`NCCL_DMABUF_ENABLE=1`" + `; a current one is assumed;
- all memory of the GPU in its BAR, as amdkfd reports its memory banks;
- distance as with NCCL. Below another host bridge of the same socket it is unknown: RCCL goes there on some AMD processors only.

The transport in use is not evaluated for AMD GPUs: a ROCm process opens all GPUs that it may use.

## Reasons

A GPU can have several at once. ` + "`rdma_gdr_gpu_obstacle_info`" + ` and ` + "`rdma_exporter topo`" + ` list all in the order of removal, with the path after each:
settings of the job and its topology file, ports, mechanism, place of the NIC. ` + "`rdma_gdr_gpu_possible`" + ` is 0 where the hardware has no direct path,
which is no fault: a GPU model without GPUDirect RDMA, or no slot near enough.

`)
	for _, r := range gdr.Reasons() {
		b.WriteString(reasonLine(string(r), r.Words(), r.Remedy()))
	}
	b.WriteString(inUse)
	for _, r := range transport.Reasons() {
		b.WriteString(reasonLine(string(r), r.Words(), r.Remedy()))
	}
	b.WriteString(ofLibraries)
	return []byte(b.String())
}

// reasonLine returns a reason with its description, and its remedy if there is one.
func reasonLine(reason, words, remedy string) string {
	if remedy != "" {
		remedy = " Remedy: " + remedy + "."
	}
	return fmt.Sprintf("- `%s`: %s.%s\n", reason, words, remedy)
}

const ofLibraries = `
## Communication libraries

` + "`rdma_job_library_transport_info`, `topo` and `job`" + ` show the communication libraries of processes: NCCL, RCCL, UCX, NIXL, Mooncake, NVSHMEM, DeepEP, libfabric, MSCCL++.
` + "`topo`" + ` adds the transports that each can use, and the remedy. Evidence: mapped files, open devices, device nodes below the root directory, memory regions, and
the environment at program start, without variables that a program sets itself.
`

const inUse = `
## Transport in use

` + "`rdma_gdr_gpu_transport{state}`" + ` is the transport currently used for data to other hosts, for each GPU held by a process with NCCL or with an RDMA device.

| state | all conditions required |
|---|---|
| ` + "`gdr`" + ` | NCCL, an RDMA device, direct by decision, GPU memory registered with NICs, and not only by other processes as far as memory regions show |
| ` + "`staging`" + ` | NCCL, its settings read, direct by decision, more than 5% of line rate on a port of the GPU's best NIC (PMA counters), not a single node by its scheduler, no cache transfer library loaded, and no GPU memory registered: observed, or both records read and empty and the process older than 15m |
| ` + "`tcp`" + ` | NCCL, no RDMA device, several nodes by its scheduler, no NVLink domain of several hosts, more than 1 Gb/s on a network interface without RDMA device |
| ` + "`host_only`" + ` | an RDMA device and no communication library, or a single node by its scheduler |
| ` + "`unknown`" + ` | none of these, or unreadable data |

**Observed registrations.** With ` + "`CAP_BPF`" + ` and ` + "`CAP_PERFMON`" + ` ([permissions](permissions.md)) eBPF programs at functions of DMA-BUF, the RDMA core
and peer memory clients observe each registration and its end, with process, device, size and mechanism (` + "`rdma_gdr_registered_bytes`" + `). What
a process that started after them has registered is complete; ` + "`rdma_gdr_trace_start_time_seconds`" + ` says since when. The
programs are detached at the end of the exporter however it ends, and for 5m above 10,000 events a second (reason overloaded). Where the kernel cannot (no BTF, no kprobes, lockdown), the log and ` + "`check --verbose`" + ` have one line with the
reason, and the records below are used.

Records of registered GPU memory, without them:

- use of the peer memory module: reference count of ` + "`nvidia_peermem`, `memory_peers`" + ` of MLNX_OFED up to 23.10;
- attachments of GPU DMA-BUFs: ` + "`/sys/kernel/debug/dma_buf/bufinfo`" + `. The kernel takes the locks of all DMA-BUFs for it, so it is read only with
  ` + "`--collector.gdr.bufinfo`" + `, at most every ten minutes, and if it is the only condition left for ` + "`staging`" + `. It counts as empty where DMA-BUF is
  unsupported (GPU driver, kernel or NIC driver) or disabled (` + "`NCCL_DMABUF_ENABLE=0`" + `).

In addition, DMA-BUFs of GPU memory that a process with an RDMA device keeps open are evidence of ` + "`gdr`" + ` (reason ` + "`dmabuf_open`" + `): their exporter and size
are in ` + "`/proc/PID/fdinfo`" + ` (` + "`nv_dmabuf`" + `; amdgpu has ` + "`drm`" + `), which needs the permission of the process list only. NCCL closes the descriptors after
registering, so that none is no evidence. ` + "`rdma_exporter topo`" + ` lists them.

Rates are averages over the last minute. A variable missing in the environment is no evidence.

`
