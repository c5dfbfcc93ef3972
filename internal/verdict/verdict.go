// Package verdict evaluates the rules on the rounds of a machine, and makes the report.
package verdict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/common/version"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/rulefiles"
)

// Build returns the version for reports: rules differ between versions.
func Build() string { return version.Version + " " + version.GetRevision() }

// Collector collects the samples of a round. rounds.Scheduler is that of a machine.
type Collector interface {
	CollectWithin(ctx context.Context, names []string, young time.Duration) (*rounds.Picture, error)
}

// Round collects samples and evaluates the rules on them. Collections younger than young are reused; the round then has
// their time.
func Round(
	ctx context.Context, sched Collector, engine *alerting.Engine, young time.Duration,
) (*rounds.Picture, error) {
	p, err := sched.CollectWithin(ctx, nil, young)
	if err != nil {
		return nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) { // the program stops: data that was not read is no sign of a fault
		return nil, ctx.Err()
	}
	now := time.Now()
	read := toWallClock(p.Read.Round(0), now.Round(0), now.Sub(p.Read))
	if err := engine.AppendPart(read, exposition.DTO(p.Families), p.Unread); err != nil {
		return p, err
	}
	return p, engine.Eval(ctx, read)
}

// toWallClock returns the time of a reading by the present wall clock, which may have been set since. then is the wall
// clock time of the reading, age the time since it. Slewing is ignored, so that rounds keep their exact distances.
func toWallClock(then, now time.Time, age time.Duration) time.Time {
	if read := now.Add(-age); read.Sub(then).Abs() >= time.Second {
		return read
	}
	return then
}

// Conclusion is the result of an evaluation: alerts, verdict on the host, and suppressed conditions.
type Conclusion struct {
	alerting.Judgement
	check.Recorded
	check.Symptoms
}

// Conclude reads the result of an engine between evaluations. Parts that cannot be read are left out.
func Conclude(engine *alerting.Engine) (c Conclusion, err error) {
	c.Judgement = engine.Judgement()
	if c.To.IsZero() {
		return c, nil
	}
	var recorded, symptoms error
	c.Recorded, recorded = readRecorded(engine, c.To)
	c.Symptoms, symptoms = readSymptoms(engine, c.To)
	return c, errors.Join(recorded, symptoms)
}

// Into returns the input of a report with the result added.
func (c Conclusion) Into(in check.Input) check.Input {
	in.Judgement, in.Recorded, in.Symptoms = c.Judgement, c.Recorded, c.Symptoms
	return in
}

// Report returns the report of the last evaluation of an engine.
func Report(engine *alerting.Engine, in check.Input) check.Report {
	in.Exporter, in.History = Build(), engine.History()
	c, err := Conclude(engine)
	in = c.Into(in)
	var unidentified error
	in.Identities, unidentified = Identities(engine, c.Alerts, c.To)
	in.Err = errors.Join(in.Err, err, unidentified)
	return check.New(in)
}

// readRecorded reads the recorded verdict on the host. A series that cannot be read is left out.
func readRecorded(engine *alerting.Engine, at time.Time) (r check.Recorded, err error) {
	values, err := engine.Query(context.Background(), `{__name__=~"instance:rdma_host_fit:state|instance:rdma_host_drain:state|instance:rdma_link_clean:seconds|alert:rdma_host_drain:state"}`, at)
	r.Draining = map[string]float64{}
	for _, v := range values {
		switch v.Labels["__name__"] {
		case "instance:rdma_host_fit:state":
			r.Fit = &v.Value
		case "instance:rdma_host_drain:state":
			r.Drain = &v.Value
		case "instance:rdma_link_clean:seconds":
			r.CleanSeconds = &v.Value
		default:
			r.Draining[v.Labels["alertname"]] = v.Value
		}
	}
	return r, err
}

// readSymptoms reads the symptoms with and without an alert from the records of the rules.
func readSymptoms(engine *alerting.Engine, at time.Time) (s check.Symptoms, err error) {
	values, err := engine.Query(context.Background(),
		`{__name__=~"rdma:part|rdma:explained|link:rdma_fabric_finding:of_switch"}`, at)
	for _, v := range values {
		if v.Labels["__name__"] == "rdma:explained" {
			s.Explained = append(s.Explained, v.Labels)
		} else {
			s.Faulty = append(s.Faulty, v.Labels)
		}
	}
	return s, err
}

// Evaluator evaluates the rules on the rounds of a machine, in its own store.
type Evaluator struct {
	m      *machine.Machine
	rounds Collector
	seen   func(*rounds.Picture) check.Seen
	Engine *alerting.Engine
	host   string
	last   check.Input // of the last round: Coverage, Seen, Needs
}

// New loads the rules for a machine whose scheduler collects the samples.
func New(
	m *machine.Machine, sched *rounds.Scheduler, files *rulefiles.Files, log *slog.Logger,
) (j *Evaluator, err error) {
	return NewOf(m, sched, Seen, alerting.Options{
		Rules: files, Files: files.Names, Instance: m.Instance(nil), Logger: log,
	})
}

// NewOf loads the rules of o for the samples of a collector. seen returns the state that is reported without an alert.
func NewOf(
	m *machine.Machine, c Collector, seen func(*rounds.Picture) check.Seen, o alerting.Options,
) (j *Evaluator, err error) {
	j = &Evaluator{m: m, rounds: c, seen: seen, host: o.Instance}
	o.Scratch = replay.Scratch()
	j.Engine, err = alerting.New(o)
	if err != nil {
		return nil, fmt.Errorf("cannot load the rules: %w", err)
	}
	return j, nil
}

// Round collects samples and evaluates the rules at time t.
func (j *Evaluator) Round(ctx context.Context, t time.Time) error {
	if err := j.m.Seek(t); err != nil {
		return err
	}
	p, err := Round(ctx, j.rounds, j.Engine, 0)
	if p != nil {
		j.last = check.Input{Coverage: p.Coverage, Needs: p.Needs, Seen: j.seen(p)}
	}
	return err
}

// Report returns the report of the last round; err is the reason why it is incomplete.
func (j *Evaluator) Report(of string, err error) check.Report {
	in := j.last
	in.Replay, in.Host, in.Err = of, j.host, err
	return Report(j.Engine, in)
}

// Alerts returns the names of all alerts of the rules.
func (j *Evaluator) Alerts() []string { return Report(j.Engine, check.Input{}).Alerts() }

// Close removes the store.
func (j *Evaluator) Close() error { return j.Engine.Close() }
