package anonymise

import (
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/test/archives"
)

// TestProcessesAreNumbered: a process has one pseudonym in all entries, and archives that are anonymous already stay
// the same.
func TestProcessesAreNumbered(t *testing.T) {
	const traced = "complete: 5234.5\nage: 3600\nbegun: 812\nlost: 2\nobserves: host events\n" +
		"registration: pid=90211 device=mlx5_0 mechanism=dmabuf regions=35 bytes=146800640\n" +
		"event: age=12.5 device=mlx5_0 kind=qp_fatal pid=90211\n"
	a := &capture.Archive{Rounds: []capture.Round{{Entries: []capture.Entry{
		{Path: answer.TracePath, Data: []byte(traced)},
		{Path: "nvml/gpu/0", Data: []byte("uuid: GPU-114bfe49-de9f-d3f5-a17d-2e541a43fa27\nprocesses: 90211 90212\n")},
		{Path: answer.ProcessDir + "/4022", Data: []byte("command: wekanode\n")},
		{Path: answer.ProcessDir + "/90211", Data: []byte("command: python3\n")},
		{Path: "rdma/mlx5_0/holders", Data: []byte("4022: contexts=1 regions=2 bytes=8192\n0: contexts=1 regions=0 bytes=0\n")},
		{Path: answer.ConnectionsOf("mlx5_0"), Data: []byte("17: port=1 pid=90211 peer=0000:0000:0000:0000:0000:ffff:0a07:0811\n" +
			"18: port=1 pid=0 peer=gpu-17.site\n")},
	}}}}
	Archive(a)
	for i, want := range map[int]string{
		0: strings.ReplaceAll(traced, "90211", "1002"),
		5: "1001: contexts=1 regions=2 bytes=8192\n0: contexts=1 regions=0 bytes=0\n",
	} {
		if got := string(a.Rounds[0].Entries[i].Data); got != want {
			t.Errorf("%d:\n%s\nwant\n%s", i, got, want)
		}
	}
	if got := a.Rounds[0].Entries[2].Path + " " + a.Rounds[0].Entries[3].Path; got != "processes/1001 processes/1002" {
		t.Error(got)
	}
	if got := string(a.Rounds[0].Entries[1].Data); !strings.Contains(got, "processes: 1002 1003\n") {
		t.Error(got)
	}
	if got := string(a.Rounds[0].Entries[4].Data); !strings.HasPrefix(got, "17: port=1 pid=1002 peer=0000:0000:") ||
		strings.Contains(got, "0a07:0811") || !strings.HasSuffix(got, "\n18: port=1 pid=0 peer=x\n") {
		t.Error(got)
	}
	before := archives.Format(t, a)
	Archive(a)
	archives.Differ(t, archives.Format(t, a), before)
}
