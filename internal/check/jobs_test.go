package check

import (
	"encoding/json"
	"reflect"
	"testing"

	"rdma_exporter/internal/alerting"
)

// TestJobsOfFinding: a job has its own GPUs and name only, and is not part of the identity.
func TestJobsOfFinding(t *testing.T) {
	known := Identity{
		"device": {{"device": "mlx5_0"}},
		"workloads": {
			{"scheduler": "slurm", "job_id": "77"},
			{"scheduler": "kubernetes", "job_id": "0a1b", "namespace": "a", "pod": "b-0"},
			{"scheduler": "unknown"},
		},
		"workload_gpus": {
			{"gpu": "10", "UUID": "GPU-k", "scheduler": "slurm", "job_id": "77"},
			{"gpu": "2", "UUID": "GPU-c", "scheduler": "slurm", "job_id": "77"},
			{"gpu": "3", "UUID": "GPU-d", "scheduler": "kubernetes", "job_id": "0a1b"},
			{"gpu": "4", "UUID": "GPU-e", "scheduler": "slurm", "job_id": "78"},
		},
		"workload_names": {{"scheduler": "slurm", "job_id": "77", "name": "llama", "user": "1001"}},
	}
	rest, jobs := known.withoutJobs()
	got, err := json.Marshal(jobs)
	const want = `[{"scheduler":"kubernetes","job_id":"0a1b","namespace":"a","pod":"b-0","gpus":[{"gpu":"3","UUID":"GPU-d"}]},` +
		`{"scheduler":"slurm","job_id":"77","name":"llama","user":"1001","gpus":[{"gpu":"2","UUID":"GPU-c"},{"gpu":"10","UUID":"GPU-k"}]},` +
		`{"scheduler":"unknown","gpus":[]}]`
	if err != nil || string(got) != want || len(rest) != 1 || len(known) != 4 {
		t.Errorf("%s %v\nwant %s\n%v", got, err, want, rest)
	}
	if rest, jobs := (Identity{}).withoutJobs(); rest != nil || jobs != nil {
		t.Errorf("%v %v", rest, jobs)
	}
}

// TestNCCLIsEvidence: what NCCL reports becomes evidence of the findings of its job, and changes neither verdict nor
// exit code.
func TestNCCLIsEvidence(t *testing.T) {
	in := Input{
		Judgement: alerting.Judgement{Rules: make([]alerting.Rule, 1), Alerts: []alerting.Alert{{
			Name: "RDMAPortDown", State: alerting.StateFiring,
			Labels: map[string]string{"severity": "critical", "drain": "evict"},
		}}},
		Identities: []Identity{{"workloads": {{"scheduler": "slurm", "job_id": "77"}}}},
	}
	without := New(in)
	in.NCCL = map[string]string{"slurm/77": "2.30.7: OK.", "slurm/78": "2.30.7: DEAD."}
	with := New(in)
	if n := len(with.Findings); n != 1 {
		t.Fatalf("%d findings", n)
	}
	facts := with.Findings[0].Evidence
	if n := len(facts); n == 0 || facts[n-1] != (Fact{"NCCL", "2.30.7: OK."}) {
		t.Errorf("%+v", facts)
	}
	in.Identities, in.NCCL = []Identity{{"workloads": {{"scheduler": "none"}}}}, map[string]string{"none": "2.30.7: INIT."}
	facts = New(in).Findings[0].Evidence
	if n := len(facts); n == 0 || facts[n-1] != (Fact{"NCCL", "2.30.7: INIT."}) {
		t.Errorf("a process without a job: %+v", facts)
	}
	with.Findings[0].Evidence = without.Findings[0].Evidence
	if !reflect.DeepEqual(with, without) {
		t.Errorf("%+v\nwithout %+v", with, without)
	}
}
