package pma

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
)

// Agent is the performance management agent of a local port, queried instead of the files of ports/N/counters: one
// or two datagrams instead of one per file. The driver answers both alike. Requests use the port's own link layer and
// need a link.
type Agent struct {
	Mode     shared.MADCounters
	agent    host.Agent
	verified bool  // its counts match the files
	wide     bool  // 64 bits where the files have fewer
	err      error // of the last query, with its time
	failed   time.Time
	errors   polled[snapshot.IBFEC]
	settings polled[snapshot.IBPortSettings]
	Files    Files
}

// Counters fills the counters of a port.
func (a *Agent) Counters(r *reading.Reader, d *snapshot.Device, p *snapshot.Port) {
	var files []wire.Stat
	if a.mayAsk(r, d, p) {
		defer func() {
			if a.err == nil {
				p.FEC = a.fec(r, p.Number)
				p.Settings = a.portSettings(r, p.Number)
			}
		}()
		if !a.verified && a.Mode != shared.CountersRecorded {
			files = a.Files.stats(r, p.LinkLayer)
		}
		got, err := askOwn(a, r, p.Number, a.agent.Requests(), host.Subnet.Counters)
		if err == nil && files != nil {
			again := r.From(source.PMA).Stats(a.Files.Path, namesOf(files))
			err = differ(a.Files.Path, got.Stats, files, again)
		}
		if a.note(r, err); err == nil {
			a.verified, a.wide = true, got.Wide
			p.Counters, p.WideCounters = append(got.Stats, a.Files.statsBut(r, p.LinkLayer, got.Stats)...), got.Wide
			return
		}
	}
	if files == nil {
		files = a.Files.stats(r, p.LinkLayer)
	}
	a.verified = false
	if a.wide { // a saturated file would look like a reset
		files = slices.DeleteFunc(files, atEnd)
	}
	p.Counters = files
}

// mayAsk reports whether the agent is queried in this round. A failure is reported until the next query. A virtual
// function has the LID of its physical function, whose agent would answer.
func (a *Agent) mayAsk(r *reading.Reader, d *snapshot.Device, p *snapshot.Port) bool {
	if a.Mode == shared.CountersOfFiles || r.Host.Subnet == nil || p.LinkLayer != "InfiniBand" ||
		d.FunctionType != snapshot.Physical {
		return false
	}
	if p.Unread || !sysfs.IsActive(p) || p.LID == nil || !shared.IsLID(*p.LID) {
		a.err = nil // link down: the agent may answer when the link is back
		return false
	}
	if lid := uint16(*p.LID); lid != a.agent.LID {
		a.agent = host.Agent{LID: lid, Port: p.Number, TransmitWait: fillsTransmitWait(d.Driver)}
		a.err, a.verified, a.errors, a.settings = nil, false, polled[snapshot.IBFEC]{}, polled[snapshot.IBPortSettings]{}
	}
	if a.err != nil && r.Now().Sub(a.failed) < shared.AgentRetryAfter {
		a.report(r)
		return false
	}
	return true
}

// fillsTransmitWait reports whether a driver fills PortXmitWait without announcing it in ClassPortInfo
// (drivers/infiniband/hw/mlx5/mad.c, pma_cnt_assign).
func fillsTransmitWait(driver string) bool { return driver == "mlx5_core" }

// note stores the outcome of a query. A missing recording is no failure.
func (a *Agent) note(r *reading.Reader, err error) {
	a.err = err
	if err == nil || a.Mode == shared.CountersRecorded && access.IsAbsent(err) {
		a.err = nil
		return
	}
	a.failed = r.Now()
	a.report(r)
}

// askOwn queries the agent of the reader's device, or the port itself, with a number of requests.
func askOwn[T any](a *Agent, r *reading.Reader, port, requests int, query shared.AgentQuery[T]) (T, error) {
	own := r.From(source.Subnet)
	if a.Mode != shared.CountersRecorded {
		own.Ask(requests)
	}
	return shared.AskAgent(r, fmt.Sprintf("mad/%s/%d", r.Device, port), shared.AgentTimeout, port, &a.agent, query)
}

func (a *Agent) report(r *reading.Reader) {
	if a.Mode == shared.CountersIfPermitted { // the files have all but the upper bits
		return
	}
	r.From(source.Subnet).Issue(a.err)
}

// statsBut reads the counters that are not yet known.
func (d *Files) statsBut(r *reading.Reader, layer string, known []wire.Stat) []wire.Stat {
	names := slices.DeleteFunc(slices.Clone(d.files(r, layer)), func(name string) bool {
		_, ok := counters.StatOf(known, name)
		return ok
	})
	if len(names) == 0 {
		return nil
	}
	return r.From(source.PMA).Stats(d.Path, names)
}

// differ compares the agent's counts with the files before and after: nil where they match. A saturated file may lag
// behind.
func differ(dir string, got, before, after []wire.Stat) error {
	for _, s := range got {
		low, there := counters.StatOf(before, s.Name)
		high, still := counters.StatOf(after, s.Name)
		if !there || !still || s.Value >= low && (s.Value <= high || atEnd(wire.Stat{Name: s.Name, Value: high})) {
			continue
		}
		err := fmt.Errorf("%w: MAD %d, file %d before and %d after it", errCountersDiffer, s.Value, low, high)
		return &access.Error{Op: "verify", Path: dir + "/" + s.Name, Err: err}
	}
	return nil
}

// errCountersDiffer: a firmware agent may count the whole port, the driver only its function.
var errCountersDiffer = errors.New("counters of the agent differ from those of the driver")

func namesOf(stats []wire.Stat) (names []string) {
	for _, s := range stats {
		names = append(names, s.Name)
	}
	return names
}

// atEnd reports whether a counter of the files is saturated.
func atEnd(s wire.Stat) bool {
	c := counters.PMAIndex[s.Name]
	return c != nil && c.Bits < 64 && s.Value >= 1<<c.Bits-1
}
