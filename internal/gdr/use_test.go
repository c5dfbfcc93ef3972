package gdr

import (
	"slices"
	"testing"
)

// job is a process of a job over four nodes whose NIC is busy and has nothing of a GPU registered; change makes it
// another one.
func job(change func(*Use)) *Use {
	u := &Use{
		NCCL: true, Verbs: true, Settings: true, Env: env("SLURM_JOB_NUM_NODES=4"), Memory: ptr(uint64(212)), Ready: Direct,
		Peermem: ptr(uint64(0)), DMABUF: ptr(uint64(0)), Busy: ptr(true), Domain: ptr(false), Other: ptr(false),
	}
	change(u)
	return u
}

// overSockets is job without an RDMA device, and with another interface busy.
func overSockets(change func(*Use)) *Use {
	return job(func(u *Use) {
		u.Verbs, u.Memory, u.Busy, u.Other = false, nil, ptr(false), ptr(true)
		change(u)
	})
}

func TestTransport(t *testing.T) {
	seen := map[Reason]bool{}
	for _, c := range []struct {
		name   string
		use    *Use
		want   Transport
		reason Reason
	}{
		{"nothing is registered", job(func(*Use) {}), OverStaging, NotRegistered},
		{"no word of the scheduler is no word against it", job(func(u *Use) { u.Env = nil }), OverStaging, NotRegistered},
		{"memory regions cannot be read", job(func(u *Use) { u.Memory = nil }), OverStaging, NotRegistered},
		{"peer memory in use", job(func(u *Use) { u.Peermem = ptr(uint64(12)) }), OverGDR, Registered},
		{"peer memory in use, DMA-BUFs not seen", job(func(u *Use) { u.Peermem, u.DMABUF = ptr(uint64(12)), nil }), OverGDR, Registered},
		{"DMA-BUFs in use", job(func(u *Use) { u.DMABUF = ptr(uint64(1)) }), OverGDR, Registered},
		{"in use, and nothing goes over the port", job(func(u *Use) { u.Peermem, u.Busy = ptr(uint64(12)), nil }), OverGDR, Registered},
		{"DMA-BUFs kept open, attachments not seen", job(func(u *Use) { u.Kept, u.DMABUF = true, nil }), OverGDR, KeepsDMABUF},
		{"DMA-BUFs kept open on one node", job(func(u *Use) { u.Kept, u.Env = true, env("SLURM_JOB_NUM_NODES=1") }), OverHostOnly, OneNode},
		{"DMA-BUFs kept open without memory regions", job(func(u *Use) { u.Kept, u.Memory = true, ptr(uint64(0)) }), OverUnknown, NoMemory},
		{"DMA-BUFs kept open, and host memory by decision", job(func(u *Use) { u.Kept, u.Ready = true, Staging }), OverUnknown, NotReady},
		{"in use by another process", job(func(u *Use) { u.Peermem, u.Memory = ptr(uint64(12)), ptr(uint64(0)) }), OverUnknown, NoMemory},
		{"storage or a cache without NCCL", job(func(u *Use) { u.NCCL = false }), OverHostOnly, NotNCCL},
		{"a cache beside NCCL", job(func(u *Use) { u.Mover = true }), OverUnknown, CacheMover},
		{"a net plugin", job(func(u *Use) { u.Plugin, u.Peermem = true, ptr(uint64(12)) }), OverUnknown, NetPlugin},
		{"one node, and traffic of storage", job(func(u *Use) { u.Env = env("SLURM_JOB_NUM_NODES=1") }), OverHostOnly, OneNode},
		{"one node by its launcher, in an allocation of several", job(func(u *Use) { u.Env = env("SLURM_JOB_NUM_NODES=4", "WORLD_SIZE=8", "LOCAL_WORLD_SIZE=8") }), OverHostOnly, OneNode},
		{"one node beside a job that registers", job(func(u *Use) { u.Env, u.Peermem = env("SLURM_JOB_NUM_NODES=1"), ptr(uint64(12)) }), OverHostOnly, OneNode},
		{"connections are not made yet", job(func(u *Use) { u.Memory = ptr(uint64(0)) }), OverUnknown, NoMemory},
		{"inside an NVLink domain", job(func(u *Use) { u.Memory, u.Domain = nil, ptr(true) }), OverUnknown, InDomain},
		{"beyond its NVLink domain", job(func(u *Use) { u.Domain = ptr(true) }), OverStaging, NotRegistered},
		{"its settings cannot be read", job(func(u *Use) { u.Settings = false }), OverUnknown, SettingsUnknown},
		{"NCCL stages by decision", job(func(u *Use) { u.Ready = Staging }), OverUnknown, NotReady},
		{"what NCCL decides is not known", job(func(u *Use) { u.Ready = Unknown }), OverUnknown, NotReady},
		{"little traffic", job(func(u *Use) { u.Busy = ptr(false) }), OverUnknown, Quiet},
		{"traffic not known", job(func(u *Use) { u.Busy = nil }), OverUnknown, BusyUnknown},
		{"peer memory cannot be read", job(func(u *Use) { u.Peermem = nil }), OverUnknown, PeermemUnseen},
		{"DMA-BUFs cannot be read", job(func(u *Use) { u.DMABUF = nil }), OverUnknown, DMABUFUnseen},

		{"nothing is registered yet", job(func(u *Use) { u.Young = true }), OverUnknown, YoungProcess},
		{"young, and nothing of a GPU is registered", job(func(u *Use) { u.Trace, u.Young = TraceWhole, true }), OverStaging, HostRegistered},
		{"observed, nothing of a GPU is registered", job(func(u *Use) { u.Trace = TraceWhole }), OverStaging, HostRegistered},
		{"observed, and registered", job(func(u *Use) { u.Trace, u.DMABUF = TraceWhole, ptr(uint64(3)) }), OverGDR, Registered},
		{"observed, DMA-BUFs kept open and not registered", job(func(u *Use) { u.Trace, u.Kept = TraceWhole, true }), OverStaging, HostRegistered},
		{"observed, a cache beside NCCL", job(func(u *Use) { u.Trace, u.Mover = TraceWhole, true }), OverUnknown, CacheMover},
		{"observed, little traffic", job(func(u *Use) { u.Trace, u.Busy = TraceWhole, ptr(false) }), OverUnknown, Quiet},
		{"observed, DMA-BUFs of an unknown exporter", job(func(u *Use) { u.Trace, u.Unclear = TraceWhole, true }), OverUnknown, ExporterUnknown},
		{"older than the observation", job(func(u *Use) { u.Trace, u.DMABUF = TraceOlder, nil }), OverUnknown, StartedBefore},
		{"older than the observation, and registered since", job(func(u *Use) { u.Trace, u.DMABUF = TraceOlder, ptr(uint64(3)) }), OverGDR, Registered},
		{"older than the observation, without DMA-BUF", job(func(u *Use) { u.Trace = TraceOlder }), OverStaging, NotRegistered},
		{"events lost", job(func(u *Use) { u.Trace, u.DMABUF = TraceLost, nil }), OverUnknown, EventsLost},
		{"observed, peer memory cannot be read", job(func(u *Use) { u.Trace, u.Peermem = TraceWhole, nil }), OverUnknown, PeermemUnseen},

		{"sockets", overSockets(func(*Use) {}), OverTCP, NoVerbs},
		{"InfiniBand switched off", overSockets(func(u *Use) { u.Env["NCCL_IB_DISABLE"] = "1" }), OverTCP, IBDisabled},
		{"sockets chosen", overSockets(func(u *Use) { u.Env["NCCL_NET"] = "Socket" }), OverTCP, NetChosen},
		{"by the launcher's word", overSockets(func(u *Use) { u.Env = env("WORLD_SIZE=16", "LOCAL_WORLD_SIZE=8") }), OverTCP, NoVerbs},
		{"more open files than are read", overSockets(func(u *Use) { u.Cut = true }), OverUnknown, FilesCut},
		{"an RDMA device among many files", job(func(u *Use) { u.Cut = true }), OverStaging, NotRegistered},
		{"the number of nodes is unknown", overSockets(func(u *Use) { u.Env = env("WORLD_SIZE=16") }), OverUnknown, NodesUnknown},
		{"no number", overSockets(func(u *Use) { u.Env = env("SLURM_JOB_NUM_NODES=many") }), OverUnknown, NodesUnknown},
		{"one node without RDMA", overSockets(func(u *Use) { u.Env = env("WORLD_SIZE=8", "LOCAL_WORLD_SIZE=8") }), OverHostOnly, OneNode},
		{"NVLink joins the nodes", overSockets(func(u *Use) { u.Domain = ptr(true) }), OverUnknown, InDomain},
		{"whether it does is not known", overSockets(func(u *Use) { u.Domain = nil }), OverUnknown, DomainUnknown},
		{"interfaces are quiet", overSockets(func(u *Use) { u.Other = ptr(false) }), OverUnknown, OtherQuiet},
		{"interfaces are not known", overSockets(func(u *Use) { u.Other = nil }), OverUnknown, OtherUnknown},
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
	for _, r := range UseReasons() {
		if !seen[r] {
			t.Errorf("%s comes out of nothing", r)
		}
		if slices.Contains(Reasons(), r) {
			t.Errorf("%s is a reason of a verdict as well", r)
		}
	}
}

func TestSuspected(t *testing.T) {
	for _, c := range []struct {
		name string
		use  *Use
		want bool
	}{
		{"only DMA-BUFs are missing", job(func(u *Use) { u.DMABUF = nil }), true},
		{"they have been", job(func(*Use) {}), true},
		{"little traffic", job(func(u *Use) { u.DMABUF, u.Busy = nil, ptr(false) }), false},
		{"peer memory in use", job(func(u *Use) { u.DMABUF, u.Peermem = nil, ptr(uint64(3)) }), false},
		{"sockets", overSockets(func(*Use) {}), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.use.Suspected(); got != c.want {
				t.Error(got)
			}
		})
	}
}

func TestAttachments(t *testing.T) {
	open, closed := hopper(), hopper()
	closed.Driver.Open = ptr(false)
	for _, c := range []struct {
		name   string
		m      *Machine
		seen   *uint64
		driver string
		env    Env
		want   string
	}{
		{"they may be in use", open, nil, "mlx5_core", nil, "not known"},
		{"seen", open, ptr(uint64(3)), "mlx5_core", nil, "some"},
		{"seen, of others, since it is switched off", open, ptr(uint64(3)), "mlx5_core", env("NCCL_DMABUF_ENABLE=0"), "none"},
		{"switched off", open, nil, "mlx5_core", env("NCCL_DMABUF_ENABLE=0"), "none"},
		{"the proprietary driver", closed, nil, "mlx5_core", nil, "none"},
		{"a NIC that cannot", open, nil, "mlx4_core", nil, "none"},
		{"a NIC of which it is not known", open, nil, "vmw_pvrdma", nil, "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.m.Attachments(c.seen, c.driver, c.env)
			said := map[bool]string{none(got): "none", some(got): "some", got == nil: "not known"}[true]
			if said != c.want {
				t.Errorf("%s, want %s", said, c.want)
			}
		})
	}
}
