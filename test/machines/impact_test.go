//go:build !race

package machines

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rdma_exporter/internal/check"
)

// TestJobsOfMachines: each finding on a port, device or GPU that a workload uses names it, in its evidence, which
// notifications have too, and with its GPUs in the JSON.
func TestJobsOfMachines(t *testing.T) {
	var named atomic.Int64
	t.Cleanup(func() { // once the machines have been played, in parallel
		if n := named.Load(); n < 5 && !t.Failed() {
			t.Errorf("jobs of %d findings", n)
		}
	})
	Each(t, func(t *testing.T, name string) {
		r := played(t, name)
		for i := range r.report.Findings {
			named.Add(int64(checkJobs(t, r.series, &r.report.Findings[i])))
		}
	})
}

// checkJobs requires the workloads on the object of a finding, and returns their number.
func checkJobs(t *testing.T, series []string, f *check.Finding) (named int) {
	t.Helper()
	for _, line := range series {
		metric, _, _ := strings.Cut(line, "{")
		labels := labelsOf(line)
		of := metric == "rdma_port_job_info" && f.Labels["device"] == labels["device"] &&
			(f.Labels["port"] == "" || f.Labels["port"] == labels["port"]) ||
			metric == "rdma_gpu_job_info" && f.Labels["gpu"] == labels["gpu"] && f.Labels["UUID"] == labels["UUID"] &&
				f.Labels["device"] == ""
		if !of {
			continue
		}
		named++
		i := slices.IndexFunc(f.Jobs,
			func(j check.Job) bool { return j.Scheduler == labels["scheduler"] && j.ID == labels["job_id"] })
		if i < 0 {
			t.Errorf("%s %v: no %s/%s in %+v", f.Alert, f.Labels, labels["scheduler"], labels["job_id"], f.Jobs)
			continue
		}
		if f.Jobs[i].Namespace != labels["namespace"] || f.Jobs[i].Pod != labels["pod"] {
			t.Errorf("%s %v: %+v, want pod %s/%s", f.Alert, f.Labels, f.Jobs[i], labels["namespace"], labels["pod"])
		}
		says := func(line check.Fact) bool {
			return line.Name == "Impact" && strings.Contains(line.Value, labels["job_id"]) ||
				labels["pod"] != "" && strings.Contains(line.Value, labels["pod"])
		}
		if !slices.ContainsFunc(f.Evidence, says) {
			t.Errorf("%s %v: the evidence does not name %s: %+v", f.Alert, f.Labels, labels["job_id"], f.Evidence)
		}
		for _, gpu := range series {
			g := labelsOf(gpu)
			if strings.HasPrefix(gpu, "rdma_gpu_job_info{") && g["scheduler"] == labels["scheduler"] &&
				g["job_id"] == labels["job_id"] &&
				!slices.Contains(f.Jobs[i].GPUs, check.JobGPU{GPU: g["gpu"], UUID: g["UUID"]}) {
				t.Errorf("%s %v: %s without GPU %s: %+v", f.Alert, f.Labels, labels["job_id"], g["gpu"], f.Jobs[i].GPUs)
			}
		}
	}
	return named
}

func labelsOf(series string) map[string]string {
	out := map[string]string{}
	for _, m := range seriesLabel.FindAllStringSubmatch(series, -1) {
		out[m[1]] = m[2]
	}
	return out
}

var seriesLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
