// Package job lists the jobs that use the RDMA ports of a host, and asks NCCL about them.
package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// Row is a workload of the host.
type Row struct {
	accel.Workload // as in rdma_port_job_info

	Name      string         `json:"name,omitempty"`
	User      string         `json:"user,omitempty"`
	Steps     []string       `json:"steps,omitempty"`
	GPUs      []check.JobGPU `json:"gpus"`
	Networks  []Network      `json:"networks,omitempty"` // network namespaces of its processes, without that of the host
	Processes []Process      `json:"processes"`          // visible ones that hold an RDMA device, or a GPU with a library
	Libraries []Library      `json:"libraries,omitempty"`
	Ports     []Port         `json:"ports"`
	Findings  []Finding      `json:"findings"` // on its ports and GPUs
	NCCL      *NCCL          `json:"nccl"`
	Dumps     *Dumps         `json:"nccl_dumps,omitempty"`
}

// Network is a network namespace with its netdevs: those of a pod with SR-IOV or a device of the host.
type Network struct {
	Namespace string   `json:"namespace"` // its number, as in /proc/PID/ns/net
	Netdevs   []string `json:"netdevs"`
}

// Process is a process of a job.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	NCCL    string `json:"nccl_version,omitempty"`
	process *accel.Process
}

// Port is the use of a port by a job.
type Port struct {
	Device      string  `json:"device"`
	Port        int     `json:"port"`
	Processes   int     `json:"processes"`
	Contexts    uint64  `json:"contexts,omitempty"`
	Regions     *uint64 `json:"memory_regions,omitempty"`
	RegionBytes uint64  `json:"memory_region_bytes,omitempty"`
	QPs         *uint64 `json:"queue_pairs,omitempty"`
}

// Finding is a finding of check, in short.
type Finding struct {
	Alert    string            `json:"alert"`
	Severity string            `json:"severity"`
	Drain    string            `json:"drain"`
	State    string            `json:"state"`
	Since    time.Time         `json:"since"`
	Labels   map[string]string `json:"labels"`
	Summary  string            `json:"summary"`
	Lost     []string          `json:"lost,omitempty"` // peers of queue pairs
}

// Rows returns the workloads that use RDMA devices, or GPUs with NCCL.
func Rows(n *snapshot.Node) []Row {
	rows := []Row{}
	if n.GDR == nil {
		return rows
	}
	of := func(w accel.Workload) *Row {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Scheduler == w.Scheduler && r.ID == w.ID })
		if i < 0 {
			i = len(rows)
			rows = append(rows, Row{
				Workload: w, GPUs: []check.JobGPU{}, Processes: []Process{}, Ports: []Port{}, Findings: []Finding{},
				Libraries: librariesOf(n.GDR, w),
			})
		}
		return &rows[i]
	}
	for _, one := range n.GDR.Jobs {
		r := of(one.Workload)
		r.Name, r.User, r.Steps = one.Name, one.User, one.Steps
		for _, g := range one.GPUs {
			r.GPUs = append(r.GPUs, check.JobGPU{GPU: n.GDR.GPUs[g].Index, UUID: n.GDR.GPUs[g].UUID})
		}
	}
	for i := range n.GDR.Processes {
		p := &n.GDR.Processes[i]
		r := of(p.Workload())
		r.Processes = append(r.Processes, Process{p.PID, p.Command, p.NCCL, p})
		if p.Network != "" && !slices.ContainsFunc(r.Networks, func(n Network) bool { return n.Namespace == p.Network }) {
			r.Networks = append(r.Networks, Network{p.Network, strings.Fields(p.Netdevs)})
		}
	}
	for _, d := range n.GDR.PortJobs {
		for _, use := range d.Jobs {
			r := of(use.Workload)
			for _, port := range d.Ports {
				r.Ports = append(r.Ports, Port{d.Device, port, use.Processes, use.Contexts, use.Regions, use.RegionBytes, use.QPs})
			}
		}
	}
	slices.SortFunc(rows,
		func(a, b Row) int { return cmp.Or(cmp.Compare(a.Scheduler, b.Scheduler), cmp.Compare(a.ID, b.ID)) })
	return rows
}

// Uses reports whether the labels are those of the job, or of a port or GPU of it.
func (r *Row) Uses(labels map[string]string) bool {
	device, port := labels["device"], labels["port"]
	if labels["scheduler"] != "" {
		return labels["scheduler"] == r.Scheduler && labels["job_id"] == r.ID
	}
	return device != "" && slices.ContainsFunc(r.Ports, func(p Port) bool {
		return p.Device == device && (port == "" || port == strconv.Itoa(p.Port))
	}) || labels["UUID"] != "" &&
		slices.ContainsFunc(r.GPUs, func(g check.JobGPU) bool { return g.UUID == labels["UUID"] })
}

// Dumps is what NCCL's Inspector plugin, or RCCL's, has recorded of a job on this host.
type Dumps struct {
	Why   string       `json:"why,omitempty"` // no records
	Rates []nccl.Rates `json:"rates"`
}
