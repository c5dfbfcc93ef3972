//go:build e2e

package rollup

import (
	"fmt"
	"testing"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

// TestThanos: as TestRollup, with a stateful ruler of Thanos in place of the pair. It reads by a Query what the leaves
// have written to a Receive, and what it has recorded itself.
func TestThanos(t *testing.T) {
	thanos := program.Installed(t, "thanos", "make rollup-thanos")
	prove(t, func(rules string) []server {
		receive := component{t, thanos, "receive", port.Held(t), port.Held(t)}
		write, rule, query := port.Held(t), component{t, thanos, "rule", port.Held(t), port.Held(t)},
			component{t, thanos, "query", port.Held(t), port.Held(t)}
		receive.run("--tsdb.path="+t.TempDir(), "--remote-write.address="+write, `--label=receive="a"`)
		query.run("--endpoint="+receive.grpc, "--endpoint="+rule.grpc,
			"--query.replica-label=replica", "--query.replica-label=receive", "--query.replica-label=ruler")
		rule.run("--data-dir="+t.TempDir(), "--rule-file="+rules, "--query=http://"+query.http, `--label=ruler="a"`,
			"--alert.label-drop=ruler", fmt.Sprintf("--eval-interval=%v", rate))
		return []server{{address: rule.http, queries: query.http, write: "http://" + write + "/api/v1/receive"}}
	})
}

// component is a program of Thanos that listens on two ports.
type component struct {
	t            *testing.T
	thanos, name string
	http, grpc   string
}

func (c component) run(args ...string) {
	c.t.Helper()
	run(c.t, c.thanos, append([]string{
		c.name, "--http-address=" + c.http, "--grpc-address=" + c.grpc, "--log.level=warn",
	}, args...)...)
}
