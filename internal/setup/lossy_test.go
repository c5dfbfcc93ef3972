package setup

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/snapshot"
)

// TestLossyClasses: the class of a job on a lossy priority of each ACTIVE lossless port; none once it leads to PFC or the site accepts it.
func TestLossyClasses(t *testing.T) {
	on := []string{"eth0 0 slurm/7 NCCL_IB_TC=0", "eth1 0 slurm/7 NCCL_IB_TC=0"}
	for name, k := range map[string]struct {
		class  string
		site   string
		change func(*snapshot.Node)
		want   []string
	}{
		"lossy":          {class: "0", want: on},
		"lossless":       {class: "106"},
		"the site":       {class: "0", site: Any},
		"one port is up": {class: "0", change: func(n *snapshot.Node) { port(n, 1).State = pointer(uint64(1)) }, want: on[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			n := rails(2)
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": k.class}, 0, 1)
			if k.change != nil {
				k.change(n)
			}
			rows := Evaluate(n, func(setting, _ string, _ int, _ string) string {
				if setting == "job_traffic_class" {
					return k.site
				}
				return ""
			})
			var got []string
			for _, c := range LossyClasses(n, rows) {
				got = append(got, fmt.Sprintf("%s %d %s %s=%d", c.Netdev, c.Priority, c.Job, c.Setting, c.Class))
			}
			if !slices.Equal(got, k.want) {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}
