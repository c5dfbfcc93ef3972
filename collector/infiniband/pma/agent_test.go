package pma

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/test/played"
)

// tells returns an agent with these counters.
func tells(wide bool, stats ...wire.Stat) func(string, *host.Agent) (host.IBCounters, error) {
	return func(string, *host.Agent) (host.IBCounters, error) {
		return host.IBCounters{Stats: slices.Clone(stats), Wide: wide}, nil
	}
}

func fails(errno syscall.Errno) func(string, *host.Agent) (host.IBCounters, error) {
	return func(string, *host.Agent) (host.IBCounters, error) {
		return host.IBCounters{}, &access.Error{Op: "ask", Path: "LID 17", Err: errno}
	}
}

// agentPort is an InfiniBand port with three counters, and its agent.
type agentPort struct {
	*Agent
	h       *host.Host
	answers *collectortest.Agents
	d       snapshot.Device
	p       snapshot.Port
	took    time.Duration // of the last read
	last    snapshot.Port
}

const agentDir = sysfs.ClassDir + "/mlx5_0/ports/1"

func newAgentPort(t *testing.T, symbolErrors int) *agentPort {
	n := func(v uint64) *uint64 { return &v }
	a := &agentPort{
		Agent: &Agent{
			Mode:  shared.CountersByMAD,
			Files: Files{Path: agentDir + "/counters"},
		}, answers: &collectortest.Agents{},
		d: snapshot.Device{Name: "mlx5_0", Driver: "mlx5_core", FunctionType: snapshot.Physical},
		p: snapshot.Port{Number: 1, LinkLayer: "InfiniBand", State: n(sysfs.StateActive), LID: n(17)},
		h: played.Machine(
			t,
			collectortest.Files(agentDir+"/counters/symbol_error", fmt.Sprint(symbolErrors), agentDir+"/counters/port_xmit_wait",
				"7", agentDir+"/counters/port_xmit_data", "1000"),
		),
	}
	a.h.Subnet, a.h.Now, a.h.Turns, a.h.Meter = a.answers, time.Now, access.NewTurns(), &source.Meter{}
	return a
}

// read reads a round: samples, failures, and numbers of file reads and agent queries.
func (a *agentPort) read(t *testing.T) string {
	t.Helper()
	requests := func(s source.Source) (n uint64) {
		for _, c := range a.h.Meter.Costs() {
			if c.Source == s {
				n = c.Requests
			}
		}
		return n
	}
	files, asked := requests(source.PMA), a.answers.Times()
	r := reading.New(t.Context(), a.h, "mlx5_0")
	p, start := a.p, time.Now()
	a.Counters(r, &a.d, &p)
	r.End()
	a.last = p
	a.took = time.Since(start)
	var out []string
	for _, l := range collectortest.Samples(Descs(), func(s metric.Sink) { Emit(s, &a.d, &p, "1") }) {
		l = strings.NewReplacer("rdma_port_", "", `{device="mlx5_0",port="1"}`, "",
			`{counter="symbol_error",device="mlx5_0",port="1"}`, "").Replace(l)
		out = append(out, l)
	}
	slices.Sort(out)
	for _, i := range r.Issues {
		out = append(out, i.Source+" "+i.Reason)
	}
	return fmt.Sprintf("%s; %d files, asked %d",
		strings.Join(out, ", "), requests(source.PMA)-files, a.answers.Times()-asked)
}

func (a *agentPort) is(t *testing.T, when, want string) {
	t.Helper()
	if got := a.read(t); got != want {
		t.Errorf("%s:\n%s\nwant\n%s", when, got, want)
	}
}

func stat(name string, v uint64) wire.Stat { return wire.Stat{Name: name, Value: v} }

// TestOwnAgent: an agent whose counts match the files replaces them, and counters that it lacks are read from files.
func TestOwnAgent(t *testing.T) {
	for _, tt := range []struct {
		name, first, then string
		symbolErrors      int
		answer            func(string, *host.Agent) (host.IBCounters, error)
	}{
		{
			name: "all", symbolErrors: 5,
			answer: tells(false, stat("symbol_error", 5), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000)),
			first:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1",
			then:   "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 0 files, asked 1",
		},
		{
			name: "no waiting", symbolErrors: 5, answer: tells(false, stat("symbol_error", 5), stat("port_xmit_data", 1000)),
			first: "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 7 files, asked 1",
			then:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 1 files, asked 1",
		},
		{
			name: "beyond the end of the file", symbolErrors: 65535,
			answer: tells(true, stat("symbol_error", 70000), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000)),
			first:  "symbol_errors_total 70000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1",
			then:   "symbol_errors_total 70000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 0 files, asked 1",
		},
		{
			name: "at the end of both", symbolErrors: 65535,
			answer: tells(false, stat("symbol_error", 65535), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000)),
			first:  "counter_saturated 1, symbol_errors_total 65535, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1",
			then:   "counter_saturated 1, symbol_errors_total 65535, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 0 files, asked 1",
		},
		{
			name: "counts the port, the driver its function", symbolErrors: 5,
			answer: tells(false, stat("symbol_error", 5), stat("port_xmit_data", 1001)),
			first:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet io; 6 files, asked 1",
			then:   "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet io; 3 files, asked 0",
		},
		{
			name: "behind the files", symbolErrors: 5, answer: tells(false, stat("symbol_error", 4)),
			first: "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet io; 6 files, asked 1",
			then:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet io; 3 files, asked 0",
		},
		{
			name: "not permitted", symbolErrors: 5, answer: fails(syscall.EACCES),
			first: "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet permission; 3 files, asked 1",
			then:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet permission; 3 files, asked 0",
		},
		{
			name: "no umad", symbolErrors: 5, answer: fails(syscall.ENOENT),
			first: "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet absent; 3 files, asked 1",
			then:  "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet absent; 3 files, asked 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgentPort(t, tt.symbolErrors)
			a.answers.Answer(tt.answer)
			a.is(t, "first", tt.first)
			a.is(t, "then", tt.then)
		})
	}
}

// TestOwnAgentFails: files replace the agent in the round in which it fails, without a step of a counter, and it is
// queried again after AgentRetryAfter, or after a link loss.
func TestOwnAgentFails(t *testing.T) {
	a := newAgentPort(t, 65535)
	now := time.Now()
	a.h.Now = func() time.Time { return now }
	good := tells(true, stat("symbol_error", 70000), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000))
	const (
		byMAD  = "symbol_errors_total 70000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 0 files, asked 1"
		anew   = "symbol_errors_total 70000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1"
		failed = "transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet io; 3 files, asked "
	)
	a.answers.Answer(good)
	a.is(t, "first", anew)
	a.is(t, "then", byMAD)
	a.answers.Answer(fails(syscall.ETIMEDOUT))
	a.is(t, "no answer", failed+"1")
	a.answers.Answer(good)
	now = now.Add(shared.AgentRetryAfter - time.Second)
	a.is(t, "rests", failed+"0")
	now = now.Add(time.Second)
	a.is(t, "after its rest", anew)
	a.answers.Answer(fails(syscall.ETIMEDOUT))
	a.is(t, "no answer", failed+"1")
	a.answers.Answer(good)
	*a.p.State = 1
	a.is(t, "no link", "transmit_bytes_total 4000, transmit_wait_ticks_total 7; 3 files, asked 0")
	*a.p.State = sysfs.StateActive
	a.is(t, "the link is back", anew)
	a.is(t, "then", byMAD)
}

// TestAgentIfPermitted: without a permission the counters come from the files, and nothing is reported; it is tried
// again, as it may be granted.
func TestAgentIfPermitted(t *testing.T) {
	a := newAgentPort(t, 65000)
	a.Mode = shared.CountersIfPermitted
	now := time.Now()
	a.h.Now = func() time.Time { return now }
	const byFiles = "symbol_errors_total 65000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 3 files, asked "
	for _, errno := range []syscall.Errno{
		syscall.EACCES, syscall.EPERM, syscall.ENOENT, syscall.ENXIO, syscall.ETIMEDOUT,
	} {
		a.answers.Answer(fails(errno))
		a.is(t, errno.Error(), byFiles+"1")
		a.is(t, "rests", byFiles+"0")
		now = now.Add(shared.AgentRetryAfter)
	}
	a.answers.Answer(tells(true, stat("symbol_error", 65000), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000)))
	a.is(t, "permitted",
		"symbol_errors_total 65000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1")
	a.is(t, "then", "symbol_errors_total 65000, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 0 files, asked 1")
}

// TestOwnAgentHangs: a hung call delays the round by AgentTimeout, once, and the counters come from the files.
func TestOwnAgentHangs(t *testing.T) {
	a := newAgentPort(t, 5)
	synctest.Test(t, func(t *testing.T) {
		a.h.Turns = access.NewTurns()
		free := make(chan struct{})
		good := tells(false, stat("symbol_error", 5), stat("port_xmit_wait", 7), stat("port_xmit_data", 1000))
		a.answers.Answer(func(device string, agent *host.Agent) (host.IBCounters, error) {
			<-free
			return good(device, agent)
		})
		const byFiles = "symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7, subnet stuck; "
		if got := a.read(t); got != byFiles+"3 files, asked 1" || a.took > shared.AgentTimeout {
			t.Errorf("%s: %s", a.took, got)
		}
		for range 3 {
			time.Sleep(shared.AgentRetryAfter)
			if a.is(t, "still in there", byFiles+"3 files, asked 0"); a.took > 0 {
				t.Errorf("waits %s", a.took)
			}
		}
		close(free)
		time.Sleep(shared.AgentRetryAfter)
		a.answers.Answer(good)
		a.is(t, "it is back",
			"symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 6 files, asked 1")
	})
}

// TestNotAsked: ports that cannot reach their own agent, and all where it is not permitted.
func TestNotAsked(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for name, change := range map[string]func(*agentPort){
		"not permitted":    func(a *agentPort) { a.Mode = shared.CountersOfFiles },
		"a tree of files":  func(a *agentPort) { a.h.Subnet = nil },
		"Ethernet":         func(a *agentPort) { a.p.LinkLayer = "Ethernet" },
		"virtual function": func(a *agentPort) { a.d.FunctionType = snapshot.Virtual },
		"no link":          func(a *agentPort) { a.p.State = n(2) },
		"state unknown":    func(a *agentPort) { a.p.State = nil },
		"state of before":  func(a *agentPort) { a.p.Unread = true },
		"no LID":           func(a *agentPort) { a.p.LID = nil },
		"LID 0":            func(a *agentPort) { a.p.LID = n(0) },
		"LID of nobody":    func(a *agentPort) { a.p.LID = n(0xffff) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgentPort(t, 5)
			a.answers.Answer(fails(syscall.EIO))
			change(a)
			for range 2 {
				got := a.read(t)
				if got, _, _ := strings.Cut(got, "transmit_wait"); name != "Ethernet" &&
					!strings.HasPrefix(got, "symbol_errors_total 5, transmit_bytes_total 4000") {
					t.Error(got)
				}
				if !strings.HasSuffix(got, " 7; 3 files, asked 0") {
					t.Error(got)
				}
			}
		})
	}
}

// TestRecordedAgent: a replay has the recorded counters, and files where none were recorded.
func TestRecordedAgent(t *testing.T) {
	a := newAgentPort(t, 5)
	a.h.Subnet = played.Machine(t,
		"-- subnet/mlx5_0/1/agent/17-1 --\nsymbol_error: 4\nport_xmit_wait: 6\nport_xmit_data: 900\n").Subnet
	a.Mode = shared.CountersRecorded
	a.is(t, "recorded", "symbol_errors_total 4, transmit_bytes_total 3600, transmit_wait_ticks_total 6; 0 files, asked 0")
	*a.p.LID = 18
	a.is(t, "not recorded",
		"symbol_errors_total 5, transmit_bytes_total 4000, transmit_wait_ticks_total 7; 3 files, asked 0")
}
