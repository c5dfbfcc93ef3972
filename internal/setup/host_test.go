package setup

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

func TestIRQLocality(t *testing.T) {
	const remedy = `; set: for i in $(ls /sys/class/infiniband/mlx5_0/device/msi_irqs); do cat /sys/class/infiniband/mlx5_0/device/local_cpulist > /proc/irq/$i/smp_affinity_list; done`
	served := func(device string, local, total uint64, elsewhere bool, unread string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.Setup.Interrupts = []hostdata.DeviceInterrupts{
				{Device: device, CPUs: "0-55", Local: local, Total: total, Elsewhere: elsewhere, Unread: unread},
			}
		}
	}
	checkRows(t, "irq_locality", func() *snapshot.Node { return rails(1) }, []rowCase{
		{name: "not read"},
		{name: "as wanted", node: served("mlx5_0", 900_000, 1_000_000, true, ""), want: []string{`mlx5_0 ok "local" want "local" by guide; 90% of 1000000 interrupts on CPUs 0-55`}},
		{name: "mostly", node: served("mlx5_0", 500_000, 1_000_000, true, ""), want: []string{
			`mlx5_0 differs/info "mostly local" want "local" by guide; 50% of 1000000 interrupts on CPUs 0-55` + remedy,
		}},
		{name: "remote", node: served("mlx5_0", 0, 1_000_000, true, ""), want: []string{
			`mlx5_0 differs/info "mostly remote" want "local" by guide; 0% of 1000000 interrupts on CPUs 0-55` + remedy,
		}},
		{name: "one node", node: served("mlx5_0", 1_000_000, 1_000_000, false, "")},
		{name: "idle", node: served("mlx5_0", 0, 99_999, true, "")},
		{name: "another device", node: served("mlx5_9", 0, 1_000_000, true, "")},
		{name: "unknown", node: served("mlx5_0", 0, 1_000_000, true, "permission"), want: []string{`mlx5_0 unknown "" want "local" by guide; /sys/kernel/irq: permission`}},
		{name: "site", node: served("mlx5_0", 0, 1_000_000, true, ""), site: "mostly remote", want: []string{
			`mlx5_0 ok "mostly remote" want "mostly remote" by site; 0% of 1000000 interrupts on CPUs 0-55`,
		}},
	})
	n := rails(1)
	served("mlx5_0", 0, 1_000_000, true, "")(n)
	if rows := OfHost(Evaluate(n, nil)); len(rows) == 0 || len(rows) == len(Evaluate(n, nil)) {
		t.Error("the share changes with the load: it is no metric")
	}
}
