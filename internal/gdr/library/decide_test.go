package library

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/words"
)

// server is a process with a GPU that has all that a library needs, and GPU memory registered.
func server(names string, change func(*Process)) *Process {
	p := &Process{
		Libraries: strings.Fields(names), Env: map[string]string{}, GPU: true, Verbs: true, Regions: new(uint64(9)),
		GPUMemory: new(true), Nodes: new(true), MayOpen: new(true), Channels: new(true),
		Capabilities: new(uint64(capSysAdmin)), Devices: []string{"mlx5_0", "mlx5_1"}, MLX5: true,
		Peermem: true, DMABUF: gdr.Direct, PeerMapping: new(true), Domain: new(false),
	}
	change(p)
	return p
}

func env(entries ...string) func(*Process) {
	return func(p *Process) {
		for _, e := range entries {
			name, value, _ := strings.Cut(e, "=")
			p.Env[name] = value
		}
	}
}

// noGPUMemory has none registered.
func noGPUMemory(p *Process) { p.GPUMemory = new(false) }

// peermemOnly is a host without DMA-BUF.
func peermemOnly(p *Process) { p.DMABUF = gdr.Staging }

// unopened has no RDMA device open.
func unopened(p *Process) { p.Verbs, p.Regions, p.GPUMemory = false, nil, nil }

func all(changes ...func(*Process)) func(*Process) {
	return func(p *Process) {
		for _, c := range changes {
			c(p)
		}
	}
}

// TestDecide: each reason, and next to it the case in which it does not apply. "gdr? rdma" is possible: gdr unknown.
func TestDecide(t *testing.T) {
	expandable := env("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512, expandable_segments:True")
	unprivileged := func(p *Process) { p.Capabilities = new(uint64(0xa80425fb)) }
	inDomain := func(p *Process) { p.Domain = new(true) }
	for _, c := range []struct {
		name, library string
		change        func(*Process)
		use           Transport
		why           Reason
		possible      string
	}{
		{"all in place", "ucx", env(), GDR, Registered, "gdr rdma tcp"},
		{"no GPU", "ucx", func(p *Process) { p.GPU = false }, RDMA, HostOnly, "rdma tcp"},
		{"host memory only", "ucx", noGPUMemory, RDMA, HostMemory, "gdr rdma tcp"},
		{"unknown whether GPU memory", "ucx", func(p *Process) { p.GPUMemory = nil }, RDMA, GPUMemoryUnknown, "gdr rdma tcp"},
		{"regions unknown", "ucx", func(p *Process) { p.Regions = nil }, Unknown, RegionsUnknown, "gdr rdma tcp"},
		{"nothing registered", "ucx", func(p *Process) { p.Regions = new(uint64) }, None, NotConnected, "gdr rdma tcp"},
		{"not open", "ucx", unopened, Unknown, NotOpened, "gdr rdma tcp"},

		{"NCCL too", "ucx nccl", env(), Unknown, SeveralLibraries, "gdr rdma tcp"},
		{"NCCL too, no GPU memory", "ucx nccl", noGPUMemory, RDMA, HostMemory, "gdr rdma tcp"},
		{"NCCL too, and a reason", "deepep nvshmem nccl", all(unprivileged, func(p *Process) { p.PeerMapping = new(false) }), Unknown, NoPeerMapping, "gdr rdma"},
		{"NIXL and its UCX", "nixl ucx", env(), GDR, Registered, "gdr rdma tcp"},
		{"NIXL with another backend", "nixl libfabric", env(), Unknown, SeveralLibraries, "gdr rdma tcp"},

		{"Mooncake, TCP", "mooncake", env("MC_FORCE_TCP=0"), TCP, MooncakeTCP, "tcp"},
		{"Mooncake, TCP and RDMA", "mooncake", env("MC_FORCE_TCP=1", "MC_FORCE_HCA=1"), GDR, Registered, "gdr rdma tcp"},
		{"Mooncake Store, TCP", "mooncake", env("MOONCAKE_PROTOCOL=tcp"), TCP, MooncakeTCP, "tcp"},
		{"Mooncake Store, RDMA", "mooncake", env("MOONCAKE_PROTOCOL=rdma"), GDR, Registered, "gdr rdma tcp"},
		{"a setting of another library", "ucx", env("MC_FORCE_TCP=1", "FI_PROVIDER=tcp"), GDR, Registered, "gdr rdma tcp"},
		{"UCX without RDMA", "ucx", env("UCX_TLS=tcp,cuda_copy"), TCP, UCXWithoutRDMA, "tcp"},
		{"UCX with RDMA", "ucx", env("UCX_TLS=tcp,cuda_copy,rc_x"), GDR, Registered, "gdr rdma tcp"},
		{"UCX within the host", "ucx", env("UCX_TLS=sm,self,cuda_ipc"), None, UCXWithoutRDMA, ""},
		{"UCX excludes all of InfiniBand", "ucx", env("UCX_TLS=^ib"), TCP, UCXWithoutRDMA, "tcp"},
		{"UCX excludes all by their names", "ucx", env("UCX_TLS=^rc,ud,dc"), TCP, UCXWithoutRDMA, "tcp"},
		{"UCX excludes one", "ucx", env("UCX_TLS=^rc,tcp"), GDR, Registered, "gdr rdma"},
		{"NIXL over UCX", "nixl ucx", env("UCX_TLS=tcp,cuda"), TCP, UCXWithoutRDMA, "tcp"},
		{"NIXL over another backend", "nixl", env("UCX_TLS=tcp,cuda"), GDR, Registered, "gdr rdma tcp"},
		{"UCX without transports for GPU memory", "ucx", all(env("UCX_TLS=rc,tcp"), noGPUMemory), RDMA, UCXWithoutGPU, "rdma tcp"},
		{"UCX excludes them", "ucx", all(env("UCX_TLS=^cuda"), noGPUMemory), RDMA, UCXWithoutGPU, "rdma tcp"},
		{"UCX without GPUDirect RDMA", "ucx", all(env("UCX_IB_GPU_DIRECT_RDMA=n"), noGPUMemory), RDMA, UCXDirectOff, "rdma tcp"},
		{"UCX with GPUDirect RDMA", "ucx", all(env("UCX_IB_GPU_DIRECT_RDMA=try"), noGPUMemory), RDMA, HostMemory, "gdr rdma tcp"},
		{"UCX on the wrong device", "ucx", env("UCX_NET_DEVICES=eth0,bond0"), TCP, UCXNetDevices, "tcp"},
		{"UCX on a device among others", "ucx", env("UCX_NET_DEVICES=eth0,mlx5_1:1"), GDR, Registered, "gdr rdma tcp"},
		{"UCX on all devices", "ucx", env("UCX_NET_DEVICES=all"), GDR, Registered, "gdr rdma tcp"},
		{"UCX on a pattern", "ucx", env("UCX_NET_DEVICES=mlx5_[0-3]:1"), GDR, Registered, "gdr rdma tcp"},
		{"UCX but one device", "ucx", env("UCX_NET_DEVICES=^mlx5_0:1"), GDR, Registered, "gdr rdma tcp"},
		{"libfabric without RDMA", "libfabric", env("FI_PROVIDER=tcp;ofi_rxm"), TCP, FabricProvider, "tcp"},
		{"libfabric with RDMA", "libfabric", env("FI_PROVIDER=tcp,verbs;ofi_rxm"), GDR, Registered, "gdr rdma tcp"},
		{"libfabric but verbs", "libfabric", env("FI_PROVIDER=^tcp"), GDR, Registered, "gdr rdma tcp"},
		{"NVSHMEM within the host", "nvshmem", env("NVSHMEM_REMOTE_TRANSPORT=none"), None, NVSHMEMRemote, ""},
		{"NVSHMEM by IBGDA only", "nvshmem", env("NVSHMEM_REMOTE_TRANSPORT=none", "NVSHMEM_IB_ENABLE_IBGDA=1"), GDR, Registered, "ibgda gdr rdma"},
		{"NCCL without InfiniBand", "nccl", env("NCCL_IB_DISABLE=1"), TCP, Reason(transport.IBDisabled), "tcp"},
		{"NCCL with it", "nccl", env("NCCL_IB_DISABLE=0"), GDR, Registered, "gdr rdma tcp"},
		{"RCCL over sockets", "rccl", env("NCCL_NET=Socket"), TCP, Reason(transport.NetChosen), "tcp"},

		{"no RDMA device", "ucx", all(unopened, func(p *Process) { p.Devices = nil }), TCP, NoDevice, "tcp"},
		{"no device nodes", "ucx", all(unopened, func(p *Process) { p.Nodes = new(false) }), TCP, NoNodes, "tcp"},
		{"no device nodes, without TCP", "deepep", all(unopened, func(p *Process) { p.Nodes = new(false) }), None, NoNodes, ""},
		{"device nodes unknown", "ucx", all(unopened, func(p *Process) { p.Nodes = nil }), Unknown, NodesUnknown, "gdr? rdma? tcp"},
		{"gone, but open", "ucx", func(p *Process) { p.Nodes = new(false) }, GDR, Registered, "gdr rdma tcp"},
		{"not permitted", "ucx", all(unopened, func(p *Process) { p.MayOpen = new(false) }), TCP, NodesDenied, "tcp"},
		{"nodes of a container", "ucx", all(unopened, func(p *Process) { p.MayOpen, p.Container = new(false), true }), Unknown, NotOpened, "gdr rdma tcp"},
		{"many open files", "ucx", all(unopened, func(p *Process) { p.Cut, p.Nodes = true, nil }), Unknown, FilesCut, "gdr? rdma? tcp"},
		{"locked memory", "mooncake", func(p *Process) { p.Regions, p.Locked = new(uint64), new(uint64(lockedEnough-1)) }, None, LockedMemory, "tcp"},
		{"enough locked memory", "mooncake", func(p *Process) { p.Regions, p.Locked = new(uint64), new(uint64(lockedEnough)) }, None, NotConnected, "gdr rdma tcp"},
		{"no limit with CAP_IPC_LOCK", "mooncake", func(p *Process) {
			p.Regions, p.Locked, p.Capabilities = new(uint64), new(uint64), new(uint64(capIPCLock))
		}, None, NotConnected, "gdr rdma tcp"},
		{"a low limit that was enough", "mooncake", func(p *Process) { p.Locked = new(uint64(65536)) }, GDR, Registered, "gdr rdma tcp"},

		{"no mechanism", "ucx", all(peermemOnly, noGPUMemory, func(p *Process) { p.Peermem = false }), RDMA, NoMechanism, "rdma tcp"},
		{"mechanism unknown", "ucx", func(p *Process) {
			p.Peermem, p.DMABUF, p.GPUMemory = false, gdr.Unknown, nil
		}, RDMA, MechanismUnknown, "gdr? rdma tcp"},
		{"registered in spite of it", "ucx", func(p *Process) { p.Peermem, p.DMABUF = false, gdr.Unknown }, GDR, Registered, "gdr rdma tcp"},
		{"expandable segments, peermem only", "mooncake", all(expandable, peermemOnly, noGPUMemory), RDMA, Expandable, "rdma tcp"},
		{"expandable segments, registration unknown", "mooncake", all(expandable, peermemOnly, func(p *Process) { p.GPUMemory = nil }), RDMA, Expandable, "gdr? rdma tcp"},
		{"expandable segments that are registered", "mooncake", all(expandable, peermemOnly), GDR, Registered, "gdr rdma tcp"},
		{"expandable segments, DMA-BUF", "mooncake", all(expandable, noGPUMemory), RDMA, HostMemory, "gdr rdma tcp"},
		{"expandable segments disabled", "mooncake", all(env("PYTORCH_ALLOC_CONF=expandable_segments:False"), peermemOnly, noGPUMemory), RDMA, HostMemory, "gdr rdma tcp"},
		{"the new name", "nixl", all(env("PYTORCH_ALLOC_CONF=expandable_segments:True"), peermemOnly, noGPUMemory), RDMA, Expandable, "rdma tcp"},
		{"NCCL allocates its own memory", "nccl", all(expandable, peermemOnly, noGPUMemory), RDMA, HostMemory, "gdr rdma tcp"},

		{"IBGDA", "deepep", unprivileged, GDR, Registered, "ibgda gdr rdma"},
		{"no peer mapping", "deepep", all(unprivileged, func(p *Process) { p.PeerMapping = new(false) }), GDR, NoPeerMapping, "gdr rdma"},
		{"no peer mapping, privileged", "deepep", func(p *Process) { p.PeerMapping = new(false) }, GDR, Registered, "ibgda gdr rdma"},
		{"no peer mapping, by the CPU", "deepep", all(unprivileged, env("NVSHMEM_IBGDA_NIC_HANDLER=cpu_host_memory"), func(p *Process) { p.PeerMapping = new(false) }), GDR, Registered, "ibgda gdr rdma"},
		{"peer mapping unknown", "deepep", all(unprivileged, func(p *Process) { p.PeerMapping = nil }), GDR, PeerMappingUnknown, "ibgda? gdr rdma"},
		{"capabilities unknown", "deepep", func(p *Process) { p.PeerMapping, p.Capabilities = new(false), nil }, GDR, PeerMappingUnknown, "ibgda? gdr rdma"},
		{"peer mapping unknown, privileged", "deepep", func(p *Process) { p.PeerMapping = nil }, GDR, Registered, "ibgda gdr rdma"},
		{"no DEVX", "deepep", func(p *Process) { p.MLX5 = false }, GDR, NoDEVX, "gdr rdma"},
		{"NVSHMEM without IBGDA", "nvshmem", func(p *Process) { p.MLX5 = false }, GDR, Registered, "gdr rdma"},

		{"an IMEX channel", "nccl", inDomain, GDR, Registered, "nvlink gdr rdma tcp"},
		{"no IMEX channel", "nccl", all(inDomain, func(p *Process) { p.Channels = new(false) }), GDR, NoChannel, "gdr rdma tcp"},
		{"no IMEX channel, nothing registered", "nvshmem", all(inDomain, func(p *Process) { p.Channels, p.Regions = new(false), new(uint64) }), None, NoChannel, "gdr rdma"},
		{"IMEX channel unknown", "nccl", all(inDomain, func(p *Process) { p.Channels = nil }), GDR, ChannelUnknown, "nvlink? gdr rdma tcp"},
		{"no NVLink domain", "nccl", func(p *Process) { p.Channels = new(false) }, GDR, Registered, "gdr rdma tcp"},
		{"NVLink domain unknown", "nccl", func(p *Process) { p.Domain, p.Channels = nil, new(false) }, GDR, Registered, "gdr rdma tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := server(c.library, c.change).Decide()[0]
			var possible []string
			for _, p := range r.Possible {
				switch p.State {
				case Yes:
					possible = append(possible, string(p.Transport))
				case Unclear:
					possible = append(possible, string(p.Transport)+"?")
				}
				if (p.Reason == "") != (p.State == Yes) {
					t.Errorf("%s: %s for %q", p.Transport, p.State, p.Reason)
				}
			}
			if r.InUse != c.use || r.Reason != c.why || strings.Join(possible, " ") != c.possible {
				t.Errorf("%s %s, possible %v; want %s %s, %s", r.InUse, r.Reason, possible, c.use, c.why, c.possible)
			}
		})
	}
}

// TestReasons: each reason is in the table, and each of the table is one of a rule or of a use.
func TestReasons(t *testing.T) {
	used := []Reason{SeveralLibraries, NotOpened, RegionsUnknown, NotConnected, HostOnly, HostMemory, GPUMemoryUnknown}
	for i := range rules {
		r := &rules[i]
		used = append(used, r.reason)
		text := r.reason.Words() + r.reason.Remedy()
		if r.reason.Words() == "" || words.Foreign(text) != text {
			t.Errorf("%s: %q", r.reason, r.reason.Words())
		}
		for _, l := range r.libraries {
			if !IsName(l) {
				t.Errorf("%s: library %s", r.reason, l)
			}
		}
	}
	for _, r := range Reasons() {
		if !slices.Contains(used, r) {
			t.Errorf("%s: never given", r)
		}
		if slices.Contains(transport.Reasons(), transport.Reason(r)) || slices.Contains(gdr.Reasons(), gdr.Reason(r)) {
			t.Errorf("%s: is a reason of another package too", r)
		}
	}
}

// TestUnknownIsNeverPossible: a process of which nothing is known has no transport of RDMA in use.
func TestUnknownIsNeverPossible(t *testing.T) {
	for _, l := range libraries {
		p := &Process{Libraries: []string{l.name}, GPU: true, Devices: []string{"mlx5_0"}, MLX5: true, Domain: new(true)}
		r := p.Decide()[0]
		if r.InUse != Unknown || r.Reason != NodesUnknown {
			t.Errorf("%s: %s %s", l.name, r.InUse, r.Reason)
		}
		for _, one := range r.Possible {
			if one.State == Yes && one.Transport != TCP {
				t.Errorf("%s: %s", l.name, one.Transport)
			}
		}
	}
	if got := (&Process{Libraries: []string{"other"}}).Decide(); got != nil {
		t.Error(got)
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("^rc,ud", "mlx5_0:1,eth0", "tcp;ofi_rxm", "expandable_segments:True")
	f.Fuzz(func(t *testing.T, tls, devices, provider, alloc string) {
		p := server("ucx libfabric mooncake", env("UCX_TLS="+tls, "UCX_NET_DEVICES="+devices, "FI_PROVIDER="+provider,
			"PYTORCH_CUDA_ALLOC_CONF="+alloc))
		if got := p.Decide(); len(got) != 3 {
			t.Fatal(fmt.Sprint(got))
		}
	})
}
