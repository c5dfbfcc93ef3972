package topo

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/gdr/transport"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
)

// Transport is the way in which data of a GPU is sent to other hosts at present.
type Transport struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
	Words  string `json:"explanation"`
	Remedy string `json:"remedy,omitempty"`
	PID    int    `json:"pid"` // of the process that holds the GPU
}

// Process holds an RDMA device, or a GPU with a communication library.
type Process struct {
	PID          int               `json:"pid"`
	Command      string            `json:"command,omitempty"`
	Job          string            `json:"job,omitempty"`
	GPUs         []int             `json:"gpu_minors,omitempty"`
	Verbs        []string          `json:"rdma_nodes"`
	Regions      *uint64           `json:"memory_regions,omitempty"`
	RegionBytes  *uint64           `json:"memory_region_bytes,omitempty"`
	DMABUFs      []DMABUFs         `json:"gpu_dmabufs_open,omitempty"`
	HasNCCL      bool              `json:"nccl"`
	NCCL         string            `json:"nccl_version,omitempty"`
	Plugin       bool              `json:"net_plugin,omitempty"`
	Mover        bool              `json:"cache_mover,omitempty"`
	Peers        *uint64           `json:"tcp_peers,omitempty"` // other hosts
	PeersOver    string            `json:"tcp_peers_over,omitempty"`
	LockedMemory *uint64           `json:"locked_memory_limit_bytes,omitempty"`
	Env          map[string]string `json:"environment,omitempty"` // settings of NCCL and of the scheduler
	Conf         map[string]string `json:"settings,omitempty"`    // NCCL settings in the files of the process
	Libraries    []Library         `json:"libraries,omitempty"`
}

// DMABUFs is the number and size of the DMA-BUFs of one exporter, with GPU memory, that a process keeps open.
type DMABUFs struct {
	Exporter string `json:"exporter"` // nv_dmabuf, or drm for amdgpu
	Buffers  int    `json:"buffers"`
	Bytes    uint64 `json:"bytes"`
}

// GID is a GID table entry that a job uses although it is not RoCE v2.
type GID struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	Index  int    `json:"gid_index"`
	Type   string `json:"gid_type"` // roce_v1, empty
	PID    int    `json:"pid"`
}

// addProcesses adds the processes with the GPUs and GIDs that they use.
func (m *Machine) addProcesses(d *accel.GDR) {
	for i := range d.Processes {
		p := &d.Processes[i]
		m.Processes = append(m.Processes, Process{
			PID: p.PID, Command: p.Command, Job: p.Job, GPUs: p.GPUs, Verbs: append([]string{}, p.Verbs...), Regions: p.Regions,
			RegionBytes: p.RegionBytes, HasNCCL: p.HasNCCL,
			DMABUFs: dmabufsOf(p.DMABUFs), NCCL: p.NCCL, Plugin: p.Plugin, Mover: p.Mover, LockedMemory: p.LockedMemory,
			Peers: p.Peers, PeersOver: p.PeersOver,
			Env: p.Env, Conf: p.Conf, Libraries: librariesOf(d, p),
		})
	}
	for i := range d.JobGIDs {
		if g := &d.JobGIDs[i]; g.Mismatch() {
			m.GIDs = append(m.GIDs, GID{g.Device, g.Port, g.Index, g.Type, g.Process.PID})
		}
	}
}

func dmabufsOf(all []accel.DMABUFs) (out []DMABUFs) {
	for _, d := range all {
		out = append(out, DMABUFs(d))
	}
	return out
}

// writeDMABUFs writes the DMA-BUFs that processes keep open.
func (m *Machine) writeDMABUFs(w io.Writer) {
	for _, p := range m.Processes {
		if kept := m.Kept(p.PID); kept != "" {
			fmt.Fprintf(w, "  %s keeps %s\n", m.describeProcess(p.PID, p.Job), kept)
		}
	}
}

// Kept returns the DMA-BUFs of GPU memory that a process keeps open, in words; empty: none.
func (m *Machine) Kept(pid int) string {
	var parts []string
	for _, d := range m.findProcess(pid).DMABUFs {
		parts = append(parts, fmt.Sprintf("%s of GPU memory open (%s), %s",
			words.Count(d.Buffers, "DMA-BUF"), d.Exporter, formatMebibytes(d.Bytes)))
	}
	return strings.Join(parts, "; ")
}

func formatMebibytes(n uint64) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', -1, 64) + " MiB"
}

// transportOf returns the transport of a GPU; nil if there is none. A transport that follows from the verdict on the
// GPU has the text of the verdict.
func transportOf(g *accel.GDRGPU) *Transport {
	t := g.Transport
	if t == nil {
		return nil
	}
	why, remedy := t.Words, t.Remedy
	if t.Reason == string(transport.NotReady) {
		why, remedy = "GPUDirect RDMA is not possible, or unknown: "+g.Best.Words, g.Best.Remedy
	}
	return &Transport{t.State, t.Reason, why, remedy, t.Process.PID}
}

// transports are the descriptions of the transport states, printed before the GPUs.
var transports = map[string]string{
	"gdr": "GPUDirect RDMA in use by", "staging": "data goes through host memory for",
	"tcp":       "data goes through TCP sockets for",
	"host_only": "no GPU data goes over NICs for", "unknown": "data path unknown for",
}

// writeUses writes the present data path of GPUs, grouped by state, reason and job.
func (m *Machine) writeUses(w io.Writer) {
	used := slices.DeleteFunc(slices.Clone(m.GPUs), func(g GPU) bool { return g.Transport == nil })
	if len(used) > 0 || slices.ContainsFunc(m.Processes, func(p Process) bool { return len(p.DMABUFs) > 0 }) {
		fmt.Fprint(w, "\nData path of running jobs\n")
	}
	for _, group := range groupGPUs(used, func(g *GPU) [3]string {
		return [3]string{g.Transport.State, g.Transport.Reason, m.findProcess(g.Transport.PID).Job}
	}) {
		var which, who []string
		for _, g := range group {
			which = append(which, g.Index)
			if pid := strconv.Itoa(g.Transport.PID); !slices.Contains(who, pid) {
				who = append(who, pid)
			}
		}
		first := group[0].Transport
		fmt.Fprintf(w, "  %s: %s GPU %s\n    %s (%s)\n",
			first.State, transports[first.State], strings.Join(which, ", "), first.Words, first.Reason)
		p := m.findProcess(first.PID)
		fmt.Fprintf(w, "    Process: %s\n", strings.TrimRight(
			strings.TrimSpace(p.Command+" "+strings.Join(who, ", "))+", "+p.Job, ", "))
		if p.Peers != nil && *p.Peers > 0 {
			fmt.Fprintf(w, "    Connections: %s\n",
				strings.TrimSuffix(words.Count(int(*p.Peers), "host")+" over "+p.PeersOver, " over "))
		}
		if first.Remedy != "" {
			fmt.Fprintf(w, "    Action: %s\n", first.Remedy)
		}
	}
	m.writeDMABUFs(w)
	for _, g := range m.GIDs {
		fmt.Fprintf(w, "  NCCL_IB_GID_INDEX=%d of process %d selects a GID of %s/%d that is %s, not RoCE v2\n",
			g.Index, g.PID, g.Device, g.Port, gidWords[g.Type])
	}
}

var gidWords = map[string]string{"roce_v1": "RoCE v1", "empty": "empty"}

// findProcess returns a process by PID.
func (m *Machine) findProcess(pid int) Process {
	for _, p := range m.Processes {
		if p.PID == pid {
			return p
		}
	}
	return Process{}
}
