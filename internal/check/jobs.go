package check

import (
	"cmp"
	"maps"
	"slices"

	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/rules/identity"
)

// Job is a workload that uses the object of a finding, or used it in the last 15 minutes.
type Job struct {
	accel.Workload

	Name string   `json:"name,omitempty"` // with --collector.gdr.job-names
	User string   `json:"user,omitempty"`
	GPUs []JobGPU `json:"gpus"` // of the workload on this host
}

// JobGPU is a GPU of a workload.
type JobGPU struct {
	GPU  string `json:"gpu"`
	UUID string `json:"UUID,omitempty"`
}

// withoutJobs returns the identity of an object without workloads, and the workloads that use the object.
func (d Identity) withoutJobs() (Identity, []Job) {
	var jobs []Job
	same := func(a, b map[string]string) bool {
		return a["scheduler"] == b["scheduler"] && a["job_id"] == b["job_id"]
	}
	for _, w := range d[identity.Workloads] {
		j := Job{GPUs: []JobGPU{}, Workload: accel.Workload{
			Scheduler: w["scheduler"], ID: w["job_id"], Namespace: w["namespace"], Pod: w["pod"],
		}}
		for _, g := range d[identity.WorkloadGPUs] {
			if same(g, w) {
				j.GPUs = append(j.GPUs, JobGPU{g["gpu"], g["UUID"]})
			}
		}
		for _, n := range d[identity.WorkloadNames] {
			if same(n, w) {
				j.Name, j.User = n["name"], n["user"]
			}
		}
		slices.SortFunc(j.GPUs,
			func(a, b JobGPU) int { return cmp.Or(cmp.Compare(len(a.GPU), len(b.GPU)), cmp.Compare(a.GPU, b.GPU)) })
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs,
		func(a, b Job) int { return cmp.Or(cmp.Compare(a.Scheduler, b.Scheduler), cmp.Compare(a.ID, b.ID)) })
	out := maps.Clone(d)
	for _, name := range []string{identity.Workloads, identity.WorkloadGPUs, identity.WorkloadNames} {
		delete(out, name)
	}
	if len(out) == 0 {
		return nil, jobs
	}
	return out, jobs
}

// addNCCL adds what NCCL reports about the jobs that use the object.
func (f *Finding) addNCCL(states map[string]string) {
	for _, j := range f.Jobs {
		if text := states[j.Key()]; text != "" {
			f.Evidence = append(f.Evidence, Fact{"NCCL", text})
		}
	}
}
