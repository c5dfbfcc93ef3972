package setup

import (
	"fmt"
	"slices"
	"testing"

	"rdma_exporter/internal/snapshot"
)

// TestLossyClasses: the class of a job on a lossy priority of each ACTIVE lossless port; none once it leads to PFC or
// the site accepts it.
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
		"one port is up": {class: "0", change: func(n *snapshot.Node) { portOf(n, 1).State = pointer(uint64(1)) }, want: on[:1]},
		"of the port, on both netdevs of a bond": {class: "106", change: func(n *snapshot.Node) {
			n.QoS.Ports[0].TrafficClass = pointer(uint64(0))
			second := n.QoS.Netdevs[0]
			second.Name = "eth9"
			n.QoS.Netdevs = append(n.QoS.Netdevs, second)
		}, want: []string{"eth0 0  traffic_class=0", "eth9 0  traffic_class=0"}},
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
			for _, c := range LossyClasses(rows) {
				got = append(got, fmt.Sprintf("%s %d %s %s=%d", c.Netdev, c.Priority, c.Job, c.Setting, c.Class))
			}
			if !slices.Equal(got, k.want) {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}
