package gpudirect

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/gpu"
	"rdma_exporter/collector/infiniband"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// rounds replays entries of a capture of two rounds, 30 s apart, and then more rounds, and returns the section of the
// last.
func rounds(t *testing.T, entries string, more int, o shared.Options) (*accel.GDR, []snapshot.Issue) {
	t.Helper()
	a, err := capture.Parse([]byte("-- capture.json --\n{\"version\":1,\"rounds\":[\"0s\",\"30s\"]}\n" + entries))
	if err != nil {
		t.Fatal(err)
	}
	p, err := replay.Play(a, time.Unix(1000, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	with := shared.NewState(o)
	all := []*shared.Collector{infiniband.New(with), gpu.New(with), New(with)}
	var n snapshot.Node
	h := p.Host()
	times := p.Times()
	for range more {
		times = append(times, times[len(times)-1].Add(30*time.Second))
	}
	for _, at := range times {
		if err := p.Seek(at); err != nil {
			t.Fatal(err)
		}
		n = snapshot.Node{}
		for _, c := range all {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			c.Read(ctx, h, &n, func(error) {})
			cancel()
		}
	}
	if n.GDR == nil {
		t.Fatal("no section")
	}
	return n.GDR, n.Issues
}

// busyBoard is board with MLNX_OFED, a number of peer memory registrations, the proprietary driver, and a port of 100
// Gb/s with some traffic in 30 s.
func busyBoard(registrations int, gigabits float64, extra string) string {
	const port = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/infiniband/mlx5_0/ports/1"
	entries := strings.Replace(board(false, ""), "NVIDIA UNIX Open Kernel Module for x86_64",
		"NVIDIA UNIX x86_64 Kernel Module", 1)
	return entries + collectortest.Files(port+"/rate", "100 Gb/sec (4X EDR)", port+"/link_layer", "InfiniBand",
		port+"/counters/port_xmit_data", "1000", port+"/counters/port_rcv_data", "7",
		"sys/module/nvidia_peermem/initstate", "live", "sys/module/nvidia_peermem/refcnt", fmt.Sprint(registrations),
		"nvml/system", "driver: 570.133.20\ncuda: 12.8", "nvml/gpu/0",
		"uuid: GPU-5e3a1c0d-0000-4c11-9a00-000000000001\npci_address: 0000:19:00.0\nmodel: NVIDIA H100 80GB HBM3") +
		collectortest.Files("+30s/"+port+"/counters/port_xmit_data", fmt.Sprintf("%.0f", 1000+gigabits*1e9/32*30)) + extra
}

// worker returns a process with NCCL on the GPU, and its registrations.
func worker(regions int, lines string) string {
	return jobOn("command: python3\nnccl: 2.27.3\nsettings: read\njob: slurm/77\n"+lines) +
		fmt.Sprintf("-- rdma/mlx5_0/holders --\n4711: contexts=1 regions=%d bytes=4096\n", regions)
}

// speed returns the speed of the interface of otherNetdev in Mb/s.
func speed(megabits int) string {
	return collectortest.Files("sys/devices/pci0000:00/0000:00:04.0/0000:01:00.0/net/eno1/speed", fmt.Sprint(megabits))
}

const nicFunction = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"

// otherNetdev returns an interface without RDMA with some traffic in 30 s.
func otherNetdev(gigabits float64) string {
	const dir = "sys/devices/pci0000:00/0000:00:04.0/0000:01:00.0"
	return netdevOn(dir, "eno1", gigabits) + collectortest.Files(dir+"/vendor", "0x8086")
}

// netdevOn returns an interface of a function with some traffic in 30 s.
func netdevOn(function, name string, gigabits float64) string {
	dir := function + "/net/" + name
	return "-- sys/class/net/" + name + " -> ../../" + strings.TrimPrefix(dir, "sys/") + " --\n-- " + dir +
		"/device -> ../../../" + path.Base(function) + " --\n" +
		collectortest.Files(dir+"/statistics/rx_bytes", "500", dir+"/statistics/tx_bytes", "0",
			"+30s/"+dir+"/statistics/rx_bytes", fmt.Sprintf("%.0f", 500+gigabits*1e9/8*30))
}

func openDriver(entries string) string {
	return strings.Replace(entries, "NVIDIA UNIX x86_64 Kernel Module", "NVIDIA UNIX Open Kernel Module for x86_64", 1)
}

// TestBufinfoAsEvidence: a suspicion is checked in the next round, if permitted.
func TestBufinfoAsEvidence(t *testing.T) {
	const unattached = "\nDma-buf Objects:\n268435456\t02000002\t00080007\t00000003\tnvidia\t00004242\t<none>\n\tAttached Devices:\n\t0000:19:00.0\nTotal 1 devices attached\n\nTotal 1 objects, 268435456 bytes"
	for _, c := range []struct {
		name, text string
		on         bool
		want       string
		live       any
	}{
		{"a NIC is attached", buffers, true, "gdr registered", uint64(1)},
		{"GPUs alone are", unattached, true, "staging not_registered", uint64(0)},
		{"nobody has permitted it", unattached, false, "unknown dmabuf_unseen", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := rounds(
				t,
				openDriver(
					busyBoard(0, 40, worker(70, "env_SLURM_JOB_NUM_NODES: 4\n")+collectortest.Files(host.BufinfoFile, c.text)),
				),
				1,
				shared.Options{Bufinfo: c.on},
			)
			tr, last := got.GPUs[0].Transport, got.Registrations[len(got.Registrations)-1]
			if said := tr.State + " " + tr.Reason; said != c.want || (last.Source == "dmabuf") != (c.live != nil) ||
				c.live != nil && collectortest.Value(last.Live) != c.live {
				t.Errorf("%s, %+v", said, last)
			}
		})
	}
}

func TestTransportOfGPUs(t *testing.T) {
	const several = "env_SLURM_JOB_NUM_NODES: 4\n"
	sockets := func(lines string) string {
		return "-- processes/4711 --\ngpus: 0\nnccl: 2.27.3\nsettings: read\n" + lines
	}
	onPort := netdevOn(nicFunction, "ib0", 11)
	for _, c := range []struct {
		name, entries string
		want          string
	}{
		{"nobody uses the GPU", busyBoard(0, 40, ""), ""},
		{"nothing is registered", busyBoard(0, 40, worker(70, several)), "staging not_registered"},
		{"registered", busyBoard(12, 40, worker(70, several)), "gdr registered"},
		{"nothing goes over the port", busyBoard(0, 4, worker(70, several)), "unknown port_quiet"},
		{"the job has not connected", busyBoard(0, 40, worker(0, several)), "unknown no_memory_region"},
		{"netlink tells of no regions", busyBoard(0, 40, jobOn("nccl: 2.27.3\nsettings: read\n"+several)), "staging not_registered"},
		{"some region is nobody's that can be seen", busyBoard(0, 40, worker(0, several)+"0: contexts=0 regions=3 bytes=1\n"), "staging not_registered"},
		{"one node", busyBoard(0, 40, worker(70, "env_SLURM_JOB_NUM_NODES: 1\n")), "host_only one_node"},
		{"no NCCL", busyBoard(0, 40, jobOn("")), "host_only no_nccl"},
		{"its own settings forbid it", busyBoard(0, 40, worker(70, several+"conf_NCCL_NET_GDR_LEVEL: LOC\n")), "unknown not_ready"},
		{"its own topology puts them apart", busyBoard(0, 40, worker(70, several+`topology: <system><cpu numaid="0"><pci busid="0000:18:00.0"></pci></cpu><cpu numaid="1"><pci busid="0000:19:00.0"></pci></cpu></system>`+"\n")), "unknown not_ready"},
		{"its settings cannot be read", busyBoard(0, 40, jobOn("nccl: 2.27.3\n"+several)), "unknown settings_unknown"},
		{"the count cannot be read", strings.Replace(busyBoard(0, 40, worker(70, several)), "-- sys/module/nvidia_peermem/refcnt --\n0\n", "-- sys/module/nvidia_peermem/refcnt !EACCES --\n", 1), "unknown peermem_unseen"},

		{"DMA-BUFs may be in use", openDriver(busyBoard(0, 40, worker(70, several))), "unknown dmabuf_unseen"},
		{"DMA-BUF is switched off for the job", openDriver(busyBoard(0, 40, worker(70, several+"env_NCCL_DMABUF_ENABLE: 0\n"))), "staging not_registered"},

		{"sockets", busyBoard(0, 0, sockets(several)+otherNetdev(6)), "tcp no_rdma_device"},
		{"sockets, and more open files than are read", busyBoard(0, 0, sockets("files_cut: 1\n"+several)+otherNetdev(6)), "unknown many_open_files"},
		{"InfiniBand switched off in a file", busyBoard(0, 0, sockets(several+"conf_NCCL_IB_DISABLE: 1\n")+otherNetdev(6)), "tcp ib_disabled"},
		{"a quiet interface", busyBoard(0, 0, sockets(several)+otherNetdev(0.09)), "unknown other_quiet"},
		{"an interface of 1 Gb/s", busyBoard(0, 0, sockets(several)+otherNetdev(0.11)+speed(1000)), "tcp no_rdma_device"},
		{"an interface of 25 Gb/s below a tenth", busyBoard(0, 0, sockets(several)+otherNetdev(2.4)+speed(25000)), "unknown other_quiet"},
		{"and above", busyBoard(0, 0, sockets(several)+otherNetdev(2.6)+speed(25000)), "tcp no_rdma_device"},
		{"of unknown speed", busyBoard(0, 0, sockets(several)+otherNetdev(0.11)+speed(-1)), "tcp no_rdma_device"},
		{"the interface of a port", busyBoard(0, 0, sockets(several)+onPort), "tcp no_rdma_device"},
		{"the interface of a port, below a tenth", busyBoard(0, 0, sockets(several)+netdevOn(nicFunction, "ib0", 9)), "unknown other_quiet"},
		{"of mlx5 in switchdev mode, which counts RDMA", busyBoard(0, 0, sockets(several)+onPort+collectortest.Files(nicFunction+"/infiniband/mlx5_0/hw_counters/lifespan", "10")), "unknown other_rate_unknown"},
		{"Open MPI on several hosts", busyBoard(0, 0, sockets("env_OMPI_COMM_WORLD_SIZE: 12\nenv_OMPI_COMM_WORLD_LOCAL_SIZE: 3\n")+otherNetdev(6)), "tcp no_rdma_device"},
		{"no interface", busyBoard(0, 0, sockets(several)), "unknown other_rate_unknown"},
		{"no word of several nodes", busyBoard(0, 0, sockets("")+otherNetdev(6)), "unknown nodes_unknown"},
		{"a domain of several hosts", strings.Replace(busyBoard(0, 0, sockets(several)+otherNetdev(6)), "model: NVIDIA H100 80GB HBM3", "model: NVIDIA GB200\nfabric_state: 3\nfabric_status: 0\nfabric_cluster: 0d1e2f30-0000-1111-2222-333344445555\nfabric_clique: 1", 1), "unknown nvlink_domain"},
		{"no NVML", strings.ReplaceAll(busyBoard(0, 0, sockets(several)+otherNetdev(6)), "nvml/", "other/"), "unknown nvlink_domain_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := rounds(t, c.entries, 0, shared.Options{})
			said := ""
			if tr := got.GPUs[0].Transport; tr != nil {
				said = tr.State + " " + tr.Reason
				if tr.Process.PID != 4711 || tr.Words == "" {
					t.Errorf("%+v", tr)
				}
			}
			if said != c.want {
				t.Errorf("%q, want %q", said, c.want)
			}
		})
	}
}

// TestOneRoundKnowsNoRate: a rate needs two rounds.
func TestOneRoundKnowsNoRate(t *testing.T) {
	got, _ := readSection(t,
		strings.Split(busyBoard(0, 40, ""), "-- +30s/")[0]+worker(70, "env_SLURM_JOB_NUM_NODES: 4\n"), shared.Options{}.NCCL)
	if tr := got.GPUs[0].Transport; tr == nil || tr.Reason != "port_rate_unknown" {
		t.Errorf("%+v", tr)
	}
}
