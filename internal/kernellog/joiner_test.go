package kernellog

import (
	"strings"
	"testing"
	"time"
)

// report is of the form of kernel/hung_task.c with a stack of mlx5 (Linux, commit message of net/mlx5: complete
// ent->slotted).
const report = `INFO: task kworker/13:2:4055883 blocked for more than 120 seconds.
      Not tainted 4.19.90-25.44.v2101.ky10.aarch64 #1
"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
kworker/13:2    D    0 4055883      2 0x00000228
Workqueue: events mlx5e_tx_dim_work [mlx5_core]
Call trace:
 __switch_to+0xe8/0x150
 __schedule+0x2a8/0x9b8
 wait_for_completion+0x10c/0x178
 mlx5_cmd_exec+0x2f8/0x4a0 [mlx5_core]
 mlx5_core_modify_cq+0x30/0x38 [mlx5_core]
`

func TestJoiner(t *testing.T) {
	other := strings.ReplaceAll(report, "[mlx5_core]", "[xfs]")
	for name, c := range map[string]struct {
		text string
		want []Event
	}{
		"stack of mlx5":        {report, []Event{{Kind: HungTask, Driver: "mlx5_core", Detail: "kworker/13:2, 120"}}},
		"stack of another":     {other, nil},
		"modules are no stack": {strings.ReplaceAll(other, "Call trace:", "Modules linked in: mlx5_ib mlx5_core [last unloaded: mlx5_core]"), nil},
		"two reports":          {other + report, []Event{{Kind: HungTask, Driver: "mlx5_core", Detail: "kworker/13:2, 120"}}},
		"between the lines": {
			strings.Replace(report, "Call trace:", "mlx5_core 0000:4d:00.0: Port module event: module 0, Cable unplugged\nCall trace:", 1),
			[]Event{{Kind: ModuleUnplugged, Driver: "mlx5_core", PCIAddress: "0000:4d:00.0", Detail: "module 0, Cable unplugged"}, {Kind: HungTask, Driver: "mlx5_core", Detail: "kworker/13:2, 120"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var j Joiner
			var got []Event
			for line := range strings.Lines(c.text) {
				if e, ok := j.Line(time.Hour, strings.TrimRight(line, "\n")); ok {
					got = append(got, e)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%+v, want %+v", got[i], c.want[i])
				}
			}
		})
	}
}

// TestJoinerForgets: a stack that is printed later belongs to something else.
func TestJoinerForgets(t *testing.T) {
	var j Joiner
	j.Line(0, "INFO: task kmcheck:72 blocked for more than 122 seconds.")
	if e, ok := j.Line(time.Minute, " mlx5_cmd_exec+0x2f8/0x4a0 [mlx5_core]"); ok {
		t.Errorf("%+v", e)
	}
}

// FuzzJoiner: whatever is printed, a stuck task is reported with the driver on its stack only.
func FuzzJoiner(f *testing.F) {
	f.Add(report)
	f.Add(strings.ReplaceAll(report, "[mlx5_core]", "[xfs]"))
	f.Fuzz(func(t *testing.T, text string) {
		var j Joiner
		for line := range strings.Lines(text) {
			if e, ok := j.Line(time.Hour, strings.TrimRight(line, "\n")); ok &&
				(stuck[e.Kind] && !rdmaModules[e.Driver] || e.Kind == Ignored || len(e.Detail) > maxDetail) {
				t.Errorf("%q: %+v", line, e)
			}
		}
	})
}
