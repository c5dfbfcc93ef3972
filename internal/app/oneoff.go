package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/rules/identity"
)

// oneOffInterval is the interval of rounds with --for.
const oneOffInterval = 15 * time.Second

// evaluateOnce evaluates the rules without the running exporter, in its own store. Errors are those of the command line; failures of the
// evaluation are in the report.
func (k *checkConfig) evaluateOnce(ctx context.Context, c *config, stderr io.Writer, log *slog.Logger) (check.Report, error) {
	m, err := c.open(time.Now())
	if err != nil {
		return check.Report{}, err
	}
	defer func() { discard(log, "cannot release the host files", m.close()) }()
	remembered, err := c.remembered(m)
	discard(log, "cannot read the state directory, evaluating without known links and devices", err)
	on, err := c.collectors(m, expect.NewMemory(remembered))
	if err != nil {
		return check.Report{}, err
	}
	detector, err := embeddedDetector()
	if err != nil {
		return check.Report{}, err
	}
	if m.player == nil { // the time that a replay takes depends on its rounds, not on the host
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, k.length+k.timeout, fmt.Errorf("timed out after --timeout=%s", k.timeout))
		defer cancel()
	}
	sched := rounds.New(ctx, rounds.Options{Host: m.Host, Collectors: on, Timeout: min(c.timeout, k.timeout*3/4), Limits: c.limits, Now: m.Now, Logger: log, Tells: true, Maintenance: c.announced(m), Coverage: func() *coverage.Detector { return detector }})
	j, err := newEvaluator(m, sched, log)
	if err != nil {
		return failed(m, err), nil
	}
	defer func() { discard(log, "cannot close the alerting engine", j.close()) }()
	if err := areAlerts(k.filter.Only, j.alerts()); err != nil {
		return check.Report{}, err
	}
	shown := newProgress(stderr, k.length)
	defer shown.end()
	for _, t := range k.times(m) {
		reached := m.reach(ctx, t)
		if reached == nil {
			reached = j.round(ctx, t)
		}
		err = errors.Join(err, reached)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		shown.show(t, len(j.report(m.recording(c), nil).Findings))
	}
	return j.report(m.recording(c), err), nil
}

// times are the rounds to evaluate: all rounds of a replay, now on a live host.
func (m *machine) times() []time.Time {
	if m.player != nil {
		return m.player.Times()
	}
	return []time.Time{m.Now()}
}

// times adds the rounds of --for.
func (k *checkConfig) times(m *machine) []time.Time {
	out := m.times()
	for at := oneOffInterval; at <= k.length; at += oneOffInterval {
		out = append(out, out[0].Add(at))
	}
	return out
}

// failed is the report of an evaluation that could not start.
func failed(m *machine, err error) check.Report {
	return check.New(check.Input{Exporter: build(), Host: instance(m), Err: err})
}

func instance(m *machine) string { return new(alertingConfig).instanceOf(m, nil) }

// evaluator evaluates the rules on the rounds of a machine, in its own store.
type evaluator struct {
	m        *machine
	rounds   *rounds.Scheduler
	engine   *alerting.Engine
	host     string
	coverage coverage.Report // of the last round
	seen     check.Seen
	needs    map[string]string
}

func newEvaluator(m *machine, sched *rounds.Scheduler, log *slog.Logger) (*evaluator, error) {
	files, names, err := readRules(nil, "")
	if err != nil {
		return nil, err
	}
	j := &evaluator{m: m, rounds: sched, host: instance(m)}
	j.engine, err = alerting.New(alerting.Options{Scratch: capture.Scratch(), Rules: files, Files: names, Instance: j.host, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("cannot load the rules: %w", err)
	}
	return j, nil
}

// hostname is empty if it cannot be read.
func (m *machine) hostname() string {
	if m.player == nil {
		return m.firstLine("proc/sys/kernel/hostname")
	}
	return m.meta.Hostname
}

// round collects at a time and evaluates.
func (j *evaluator) round(ctx context.Context, t time.Time) error {
	if err := j.m.seek(t); err != nil {
		return err
	}
	p, err := evaluateRound(ctx, j.rounds, j.engine, 0)
	if p != nil {
		j.coverage, j.needs, j.seen = p.Coverage, p.Needs, seenIn(p)
	}
	return err
}

func (j *evaluator) report(replay string, err error) check.Report {
	return reportOf(j.engine, check.Input{Replay: replay, Host: j.host, Coverage: j.coverage, Seen: j.seen, Needs: j.needs, Err: err})
}

// alerts lists the alerts of the rules.
func (j *evaluator) alerts() []string { return reportOf(j.engine, check.Input{}).Alerts() }

// seenIn is the state in a round that has no alert but is reported.
func seenIn(p *rounds.Picture) (out check.Seen) {
	out.Maintenance = p.Maintenance
	if p.Node.GPUs != nil {
		out.GPUsReleased = p.Node.GPUs.Released
	}
	out.Functions, out.Failed = functionsIn(p), failedIn(p)
	n := p.Node.InfiniBand
	if n != nil && n.None != nil {
		out.NoDevice = &check.NoDevice{Functions: n.None.Functions, Namespaced: n.None.Namespaced}
	}
	for _, id := range n.NotExpected() {
		out.NotExpected = append(out.NotExpected, check.Port{Device: id.Device, Port: id.Number})
	}
	out.Rates.Ports, out.Rates.Capable = n.Unvouched()
	if n != nil && n.Stack != nil && n.Stack.Expected == snapshot.ExpectedUnknown {
		out.Stack = &check.Stack{State: string(n.Stack.State)}
		for _, f := range n.Stack.Functions {
			out.Stack.Functions = append(out.Stack.Functions, f.PCIAddress)
		}
	}
	return out
}

// failedIn is nil if no read fails.
func failedIn(p *rounds.Picture) *check.FailedReads {
	if len(p.Failures) == 0 {
		return nil
	}
	out := &check.FailedReads{Devices: []string{}, Others: []string{}, First: p.Failures[0].String()}
	for _, f := range slices.Backward(p.Failures) {
		if f.Device != "" {
			out.First = f.String()
		}
		if f.Device != "" {
			out.Devices = append(out.Devices, f.Device)
		} else {
			out.Others = append(out.Others, f.Collector)
		}
	}
	for _, names := range []*[]string{&out.Devices, &out.Others} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return out
}

// functionsIn is what is not read; nil: everything is.
func functionsIn(p *rounds.Picture) *check.Functions {
	f := check.Functions{Devices: p.LeftOut.Devices, Series: p.LeftOut.Series}
	if r := p.Node.Reduced; r.Reduces() {
		f.Reduced = len(r.Parts)
		for _, device := range r.LeftOut {
			if r.Of(device) {
				f.Reduced--
			}
		}
	}
	if f == (check.Functions{}) {
		return nil
	}
	return &f
}

// conclusion is the result of an evaluation: alerts, verdict on the host, and suppressed conditions.
type conclusion struct {
	alerting.Judgement
	check.Recorded
	check.Suspects
}

// concludedBy reads the result of an engine between evaluations. What cannot be read is left out.
func concludedBy(engine *alerting.Engine) (c conclusion, err error) {
	c.Judgement = engine.Judgement()
	if c.To.IsZero() {
		return c, nil
	}
	var recorded, suspects error
	c.Recorded, recorded = recordedBy(engine, c.To)
	c.Suspects, suspects = suspectsOf(engine, c.To)
	return c, errors.Join(recorded, suspects)
}

// into adds the result to the input of a report.
func (c conclusion) into(in check.Input) check.Input {
	in.Judgement, in.Recorded, in.Suspects = c.Judgement, c.Recorded, c.Suspects
	return in
}

// reportOf makes the report of the last evaluation of an engine.
func reportOf(engine *alerting.Engine, in check.Input) check.Report {
	in.Exporter, in.History = build(), engine.History()
	c, err := concludedBy(engine)
	in = c.into(in)
	var unidentified error
	in.Identities, unidentified = identitiesOf(engine, c.Alerts, c.To)
	in.Err = errors.Join(in.Err, err, unidentified)
	return check.New(in)
}

func (j *evaluator) close() error { return j.engine.Close() }

// recordedBy reads the recorded verdict on the host. A series that cannot be read is left out.
func recordedBy(engine *alerting.Engine, at time.Time) (r check.Recorded, err error) {
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

// suspectsOf reads the conditions of alerts in cause chains.
func suspectsOf(engine *alerting.Engine, at time.Time) (s check.Suspects, err error) {
	for _, r := range engine.RecordingRules() {
		if strings.HasSuffix(r.Name, ":suspect") {
			s.Records = append(s.Records, r.Name)
		}
	}
	values, err := engine.Query(context.Background(), `{__name__=~".+:suspect"}`, at)
	for _, v := range values {
		s.Series = append(s.Series, v.Labels)
	}
	return s, err
}

// identitiesOf queries what identifies the objects of alerts. It runs when a report is read, not in rounds. Alerts on one device share the results.
func identitiesOf(engine *alerting.Engine, alerts []alerting.Alert, at time.Time) (out []check.Identity, err error) {
	results := map[string][]map[string]string{}
	for _, a := range alerts {
		var known check.Identity
		for _, q := range identity.Questions(a.Labels) {
			result, ok := results[q.Query]
			if !ok {
				series, failed := engine.Query(context.Background(), q.Query, at)
				err = errors.Join(err, failed)
				for _, s := range series {
					result = append(result, s.Labels)
				}
				results[q.Query] = result
			}
			if len(result) > 0 {
				if known == nil {
					known = check.Identity{}
				}
				known[q.Name] = result
			}
		}
		out = append(out, known)
	}
	return out, err
}
