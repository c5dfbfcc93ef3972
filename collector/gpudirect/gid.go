package gpudirect

import (
	"slices"
	"strconv"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

var (
	gdrJobGIDMismatch = metric.Of("rdma_gdr_gpu_info", metric.Beside("rdma_gdr_gpu_info", metric.Asks(source.Processes,
		metric.Port("rdma_gdr_job_gid_mismatch",
			"Whether the GID table entry selected by NCCL_IB_GID_INDEX of a job is not RoCE v2, on a RoCE port available to the job. Absent without such a job.",
			"/proc/PID/environ, nccl.conf, ports/N/gid_attrs/types"))))
	gdrJobGIDInfo = metric.Beside("rdma_gdr_job_gid_mismatch", metric.Port("rdma_gdr_job_gid_info",
		"GID table entry selected by a job that is not RoCE v2, always 1. gid_type: roce_v1, empty. workload: the job.",
		"as rdma_gdr_job_gid_mismatch", "gid_index", "gid_type", "workload"))
)

// gidKey is an entry of the GID table of a port.
type gidKey struct{ port, index int }

// gidIndex returns the GID index selected by a process with NCCL and RDMA devices. NCCL selects one itself if it is
// negative (ncclParamIbGidIndex, src/transport/net_ib).
func gidIndex(p *accel.Process, conf nccl.Env) (int, bool) {
	if !p.HasNCCL || len(p.Verbs) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(settings(p, conf)["NCCL_IB_GID_INDEX"], 0, 16)
	return int(n), err == nil
}

func gidIndices(processes []accel.Process, conf nccl.Env) (out []int) {
	for i := range processes {
		if n, ok := gidIndex(&processes[i], conf); ok && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// readGIDTypes reads the types of entries on the RoCE ports of a device. The kernel returns EINVAL for an empty one,
// and ENOENT beyond the end of the table.
func readGIDTypes(reader *reading.Reader, device string, devices []snapshot.Device, indices []int) map[gidKey]string {
	i := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Name == device })
	if i < 0 || len(indices) == 0 {
		return nil
	}
	out := map[gidKey]string{}
	r := reader.From(source.PortTables)
	for j := range devices[i].Ports {
		p := &devices[i].Ports[j]
		if !sysfs.IsRoCE(&devices[i], p) || !sysfs.IsActive(p) {
			continue
		}
		for _, index := range indices {
			r.Ask(1)
			b, err := r.Host.Files.ReadIn(sysfs.PortDir(device, p.Number)+"/gid_attrs/types", strconv.Itoa(index), nil)
			reason := access.ReasonOf(err)
			switch {
			case err == nil && string(b) == "RoCE v2\n":
				out[gidKey{p.Number, index}] = "roce_v2"
			case err == nil:
				out[gidKey{p.Number, index}] = "roce_v1"
			case reason == access.Invalid || reason == access.Absent:
				out[gidKey{p.Number, index}] = "empty"
			default:
				r.Issue(err)
			}
		}
	}
	return out
}

// jobGIDs returns the entries selected by jobs, on the ports available to them, each once.
func jobGIDs(d *accel.GDR, nics []gdrNIC, conf nccl.Env) (out []accel.GDRJobGID) {
	for g := range d.GPUs {
		p := d.GPUs[g].Process
		if p == nil {
			continue
		}
		index, ok := gidIndex(p, conf)
		for i := range nics {
			if !ok || !d.Pairs[g*len(nics)+i].Eligible {
				continue
			}
			for _, port := range nics[i].Ports {
				kind, known := nics[i].gids[gidKey{port.Number, index}]
				one := accel.GDRJobGID{Device: nics[i].Device, Port: port.Number, Index: index, Type: kind, Process: p}
				if known && !slices.ContainsFunc(out, func(o accel.GDRJobGID) bool {
					return o.Device == one.Device && o.Port == one.Port && o.Index == one.Index && o.Process.Job == p.Job
				}) {
					out = append(out, one)
				}
			}
		}
	}
	return out
}

func emitJobGIDs(s metric.Sink, d *accel.GDR) {
	wrong := map[snapshot.PortID]bool{}
	var order []snapshot.PortID
	for i := range d.JobGIDs {
		g := &d.JobGIDs[i]
		at := snapshot.PortID{Device: g.Device, Number: g.Port}
		if !slices.Contains(order, at) {
			order = append(order, at)
		}
		if wrong[at] = wrong[at] || g.Mismatch(); g.Mismatch() {
			s.Emit(gdrJobGIDInfo, 1, g.Device, strconv.Itoa(g.Port), strconv.Itoa(g.Index), g.Type, g.Process.Job)
		}
	}
	for _, at := range order {
		s.Emit(gdrJobGIDMismatch, metric.BoolValue(wrong[at]), at.Device, strconv.Itoa(at.Number))
	}
}
