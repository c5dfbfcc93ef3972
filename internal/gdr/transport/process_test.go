package transport

import (
	"slices"
	"testing"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/nccl"
)

// job returns a process of a job over four nodes whose NIC is busy and has nothing of a GPU registered; change makes it
// another one.
func job(change func(*Process)) *Process {
	u := &Process{
		NCCL: true, Verbs: true, Settings: true, Env: nccl.Env{"SLURM_JOB_NUM_NODES": "4"}, Memory: new(uint64(212)),
		Ready: gdr.Direct, Peermem: new(uint64(0)), DMABUF: new(uint64(0)), Busy: new(true),
		Domain: new(false), Sockets: new(false),
	}
	change(u)
	return u
}

// overSockets is job without an RDMA device, and with another interface busy.
func overSockets(change func(*Process)) *Process {
	return job(func(u *Process) {
		u.Verbs, u.Memory, u.Busy, u.Sockets = false, nil, new(false), new(true)
		change(u)
	})
}

func TestTransport(t *testing.T) {
	seen := map[Reason]bool{}
	for _, c := range []struct {
		name   string
		use    *Process
		want   Kind
		reason Reason
	}{
		{"nothing is registered", job(func(*Process) {}), OverStaging, NotRegistered},
		{"no word of the scheduler is no word against it", job(func(u *Process) { u.Env = nil }), OverStaging, NotRegistered},
		{"memory regions cannot be read", job(func(u *Process) { u.Memory = nil }), OverStaging, NotRegistered},
		{"peer memory in use", job(func(u *Process) { u.Peermem = new(uint64(12)) }), OverGDR, Registered},
		{"peer memory in use, DMA-BUFs not seen", job(func(u *Process) { u.Peermem, u.DMABUF = new(uint64(12)), nil }), OverGDR, Registered},
		{"DMA-BUFs in use", job(func(u *Process) { u.DMABUF = new(uint64(1)) }), OverGDR, Registered},
		{"in use, and nothing goes over the port", job(func(u *Process) { u.Peermem, u.Busy = new(uint64(12)), nil }), OverGDR, Registered},
		{"DMA-BUFs kept open, attachments not seen", job(func(u *Process) { u.Kept, u.DMABUF = true, nil }), OverGDR, KeepsDMABUF},
		{"DMA-BUFs kept open on one node", job(func(u *Process) { u.Kept, u.Env = true, nccl.Env{"SLURM_JOB_NUM_NODES": "1"} }), OverHostOnly, OneNode},
		{"DMA-BUFs kept open without memory regions", job(func(u *Process) { u.Kept, u.Memory = true, new(uint64(0)) }), OverUnknown, NoMemory},
		{"DMA-BUFs kept open, and host memory by decision", job(func(u *Process) { u.Kept, u.Ready = true, gdr.Staging }), OverUnknown, NotReady},
		{"in use by another process", job(func(u *Process) { u.Peermem, u.Memory = new(uint64(12)), new(uint64(0)) }), OverUnknown, NoMemory},
		{"storage or a cache without NCCL", job(func(u *Process) { u.NCCL = false }), OverHostOnly, NotNCCL},
		{"another library in place of NCCL", job(func(u *Process) { u.NCCL, u.Other = false, true }), OverUnknown, OtherLibrary},
		{"another library beside NCCL", job(func(u *Process) { u.Other = true }), OverStaging, NotRegistered},
		{"a cache beside NCCL", job(func(u *Process) { u.Mover = true }), OverUnknown, CacheMover},
		{"a net plugin", job(func(u *Process) { u.Plugin, u.Peermem = true, new(uint64(12)) }), OverUnknown, NetPlugin},
		{"one node, and traffic of storage", job(func(u *Process) { u.Env = nccl.Env{"SLURM_JOB_NUM_NODES": "1"} }), OverHostOnly, OneNode},
		{"one node by its launcher, in an allocation of several", job(func(u *Process) {
			u.Env = nccl.Env{"SLURM_JOB_NUM_NODES": "4", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}
		}), OverHostOnly, OneNode},
		{"one node beside a job that registers", job(func(u *Process) { u.Env, u.Peermem = nccl.Env{"SLURM_JOB_NUM_NODES": "1"}, new(uint64(12)) }), OverHostOnly, OneNode},
		{"connections are not made yet", job(func(u *Process) { u.Memory = new(uint64(0)) }), OverUnknown, NoMemory},
		{"inside an NVLink domain", job(func(u *Process) { u.Memory, u.Domain = nil, new(true) }), OverUnknown, InDomain},
		{"beyond its NVLink domain", job(func(u *Process) { u.Domain = new(true) }), OverStaging, NotRegistered},
		{"its settings cannot be read", job(func(u *Process) { u.Settings = false }), OverUnknown, SettingsUnknown},
		{"NCCL stages by decision", job(func(u *Process) { u.Ready = gdr.Staging }), OverUnknown, NotReady},
		{"what NCCL decides is not known", job(func(u *Process) { u.Ready = gdr.Unknown }), OverUnknown, NotReady},
		{"little traffic", job(func(u *Process) { u.Busy = new(false) }), OverUnknown, Quiet},
		{"traffic not known", job(func(u *Process) { u.Busy = nil }), OverUnknown, BusyUnknown},
		{"peer memory cannot be read", job(func(u *Process) { u.Peermem = nil }), OverUnknown, PeermemUnseen},
		{"DMA-BUFs cannot be read", job(func(u *Process) { u.DMABUF = nil }), OverUnknown, DMABUFUnseen},

		{"nothing is registered yet", job(func(u *Process) { u.Young = true }), OverUnknown, YoungProcess},
		{"young, and nothing of a GPU is registered", job(func(u *Process) { u.Trace, u.Young = TraceWhole, true }), OverStaging, HostRegistered},
		{"observed, nothing of a GPU is registered", job(func(u *Process) { u.Trace = TraceWhole }), OverStaging, HostRegistered},
		{"observed, and registered", job(func(u *Process) { u.Trace, u.DMABUF = TraceWhole, new(uint64(3)) }), OverGDR, Registered},
		{"observed, DMA-BUFs kept open and not registered", job(func(u *Process) { u.Trace, u.Kept = TraceWhole, true }), OverStaging, HostRegistered},
		{"observed, a cache beside NCCL", job(func(u *Process) { u.Trace, u.Mover = TraceWhole, true }), OverUnknown, CacheMover},
		{"observed, little traffic", job(func(u *Process) { u.Trace, u.Busy = TraceWhole, new(false) }), OverUnknown, Quiet},
		{"observed, DMA-BUFs of an unknown exporter", job(func(u *Process) { u.Trace, u.Unclear = TraceWhole, true }), OverUnknown, ExporterUnknown},
		{"older than the observation", job(func(u *Process) { u.Trace, u.DMABUF = TraceOlder, nil }), OverUnknown, StartedBefore},
		{"older than the observation, and registered since", job(func(u *Process) { u.Trace, u.DMABUF = TraceOlder, new(uint64(3)) }), OverGDR, Registered},
		{"older than the observation, without DMA-BUF", job(func(u *Process) { u.Trace = TraceOlder }), OverStaging, NotRegistered},
		{"events lost", job(func(u *Process) { u.Trace, u.DMABUF = TraceLost, nil }), OverUnknown, EventsLost},
		{"observed, peer memory cannot be read", job(func(u *Process) { u.Trace, u.Peermem = TraceWhole, nil }), OverUnknown, PeermemUnseen},

		{"sockets", overSockets(func(*Process) {}), OverTCP, NoVerbs},
		{"InfiniBand switched off", overSockets(func(u *Process) { u.Env["NCCL_IB_DISABLE"] = "1" }), OverTCP, IBDisabled},
		{"sockets chosen", overSockets(func(u *Process) { u.Env["NCCL_NET"] = "Socket" }), OverTCP, NetChosen},
		{"by the launcher's word", overSockets(func(u *Process) { u.Env = nccl.Env{"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"} }), OverTCP, NoVerbs},
		{"more open files than are read", overSockets(func(u *Process) { u.Cut = true }), OverUnknown, FilesCut},
		{"an RDMA device among many files", job(func(u *Process) { u.Cut = true }), OverStaging, NotRegistered},
		{"the number of nodes is unknown", overSockets(func(u *Process) { u.Env = nccl.Env{"WORLD_SIZE": "16"} }), OverUnknown, NodesUnknown},
		{"no number", overSockets(func(u *Process) { u.Env = nccl.Env{"SLURM_JOB_NUM_NODES": "many"} }), OverUnknown, NodesUnknown},
		{"one node without RDMA", overSockets(func(u *Process) { u.Env = nccl.Env{"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"} }), OverHostOnly, OneNode},
		{"NVLink joins the nodes", overSockets(func(u *Process) { u.Domain = new(true) }), OverUnknown, InDomain},
		{"whether it does is not known", overSockets(func(u *Process) { u.Domain = nil }), OverUnknown, DomainUnknown},
		{"connected to another host, whatever launched it", overSockets(func(u *Process) { u.Env, u.Peers = nil, new(uint64(1)) }), OverTCP, NoVerbs},
		{"not connected to any", overSockets(func(u *Process) { u.Peers = new(uint64) }), OverUnknown, NotConnected},
		{"one node by its launcher, and connected to another", overSockets(func(u *Process) {
			u.Env, u.Peers = nccl.Env{"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, new(uint64(1))
		}), OverHostOnly, OneNode},
		{"interfaces are quiet", overSockets(func(u *Process) { u.Sockets = new(false) }), OverUnknown, SocketsQuiet},
		{"interfaces are not known", overSockets(func(u *Process) { u.Sockets = nil }), OverUnknown, SocketsUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := c.use.Decide()
			if got != c.want || why != c.reason {
				t.Errorf("%s %s, want %s %s", got, why, c.want, c.reason)
			}
			if why.Words() == "" {
				t.Errorf("%s has no words", why)
			}
		})
		seen[c.reason] = true
	}
	for _, r := range Reasons() {
		if !seen[r] {
			t.Errorf("%s comes out of nothing", r)
		}
		if slices.Contains(gdr.Reasons(), gdr.Reason(r)) {
			t.Errorf("%s is a reason of a verdict as well", r)
		}
	}
}

func TestSuspected(t *testing.T) {
	for _, c := range []struct {
		name string
		use  *Process
		want bool
	}{
		{"only DMA-BUFs are missing", job(func(u *Process) { u.DMABUF = nil }), true},
		{"they have been", job(func(*Process) {}), true},
		{"little traffic", job(func(u *Process) { u.DMABUF, u.Busy = nil, new(false) }), false},
		{"peer memory in use", job(func(u *Process) { u.DMABUF, u.Peermem = nil, new(uint64(3)) }), false},
		{"sockets", overSockets(func(*Process) {}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.use.Suspected(); got != c.want {
				t.Error(got)
			}
		})
	}
}
