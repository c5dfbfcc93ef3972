//go:build e2e

package kernel

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/ruleplay"
)

const stalledJob = `device="rxe0",job_id="88",port="1",scheduler="slurm"`

// stalledSeries are those of the port that the rules of stalled jobs read.
var stalledSeries = []string{
	`rdma_port_job_info{` + stalledJob + `}`,
	`rdma_port_transmit_packets_total{device="rxe0",port="1"}`,
	`rdma_port_receive_packets_total{device="rxe0",port="1"}`,
	rxeState,
}

// testStalled records the port of a job whose processes exchange messages and then wait, and plays the record to the
// rules: a scrape is a minute of theirs, and a packet counts as 2000, since an emulated host is slow. The guest has no
// GPU: those of the play wait from the same minute on.
func testStalled(t *testing.T, g *guest) {
	const cgroup = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_88/step_0/user/task_0"
	g.must(t, mountCgroups+" && mkdir -p "+cgroup)
	eventually(t, func() error {
		return okWith(g.run("grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1"))
	})
	const in = "sh -c 'echo $$ >" + cgroup + "/cgroup.procs && "
	const pingpong = "ibv_rc_pingpong -d rxe0 -g 1 -n 100000000"
	g.must(t, in+"exec ibv_rc_pingpong -d rxe0 -g 1 -p 18700' >/tmp/waits.log 2>&1 & echo $! >/tmp/waits.pid")
	defer g.must(t, "kill $(cat /tmp/waits.pid)")
	g.must(t, in+"exec "+pingpong+" -p 18701' >/tmp/server.log 2>&1 & echo $! >/tmp/server.pid")
	g.must(t, in+"for i in 1 2 3 4 5; do "+pingpong+" -p 18701 127.0.0.1 && exit; usleep 500000; done' >/tmp/client.log 2>&1 & echo $! >/tmp/client.pid")
	g.expectWithin(t, 3*time.Minute, samples{stalledSeries[0]: 1}) // processes are listed once a minute

	const busy, silent = 22, 12
	values := make([][]string, len(stalledSeries))
	for i := range busy + silent {
		if i == busy {
			g.must(t, "kill $(cat /tmp/client.pid) $(cat /tmp/server.pid); true")
		}
		time.Sleep(2 * time.Second)
		s, err := scrape(t.Context(), g.url)
		if err != nil {
			t.Fatal(err)
		}
		for j, name := range stalledSeries {
			v, ok := s[name]
			if !ok {
				t.Fatalf("scrape %d lacks %s", i, name)
			}
			if strings.Contains(name, "packets") {
				v *= 2000
			}
			values[j] = append(values[j], fmt.Sprintf("%.0f", v))
		}
	}

	play := ruleplay.Test{Interval: "1m"}
	add := func(name, text string) {
		play.Input = append(play.Input, struct{ Series, Values string }{
			strings.Replace(name, "{", `{instance="guest:10879",job="rdma_exporter",`, 1), text,
		})
	}
	for j, name := range stalledSeries {
		add(name, strings.Join(values[j], " "))
	}
	add(`rdma_gpu_job_info{gpu="0",UUID="GPU-0",scheduler="slurm",job_id="88"}`, fmt.Sprintf("1x%d", busy+silent))
	add(`rdma_gpu_utilization_ratio{gpu="0",UUID="GPU-0"}`, fmt.Sprintf("1x%d", busy+silent))
	add(`rdma_gpu_power_watts{gpu="0",UUID="GPU-0"}`, fmt.Sprintf("620x%d 172x%d", busy-1, silent))
	p := ruleplay.New(t, os.DirFS("../../rules"), []string{
		"node/job_ports.rules.yml", "node/symptoms.rules.yml", "node/faults.rules.yml", "node/alerts.rules.yml",
	}, time.Minute, &play)
	first := time.Duration(-1)
	if err := p.Until(t.Context(), (busy+silent-1)*time.Minute, func() {
		for _, a := range p.Alerts() {
			if a.Labels.Get("alertname") == "RDMAJobStalled" && a.Labels.Get("job_id") == "88" && first < 0 {
				first = p.Now
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first < (busy+3)*time.Minute || first > (busy+8)*time.Minute {
		t.Errorf("stalled from minute %v on, silent from %d; packets %v", first, busy, values[1])
	}
}
