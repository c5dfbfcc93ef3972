package alerting

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"rdma_exporter/internal/alerting/store"
)

// Append stores one round as a scrape of this exporter at ts would: job and instance on every series, up=1, classic
// series for histograms and summaries, and a staleness marker for each series that has disappeared since the previous
// round. Timestamps of samples are ignored: a round has one timestamp. Of duplicate samples the first is kept.
func (e *Engine) Append(ts time.Time, families iter.Seq[*dto.MetricFamily]) error {
	return e.AppendPart(ts, families, nil)
}

// AppendPart is Append of a round in which the metrics in unread were not read completely. Their series of an earlier
// run do not end with it.
func (e *Engine) AppendPart(ts time.Time, families iter.Seq[*dto.MetricFamily], unread map[string]bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ts = ts.Round(0) // wall clock only
	suspended := e.followClock()
	if err := e.moveBack(ts); err != nil {
		return err
	}
	if gap := ts.Sub(e.to); !e.to.IsZero() && gap > lookback {
		e.skip(max(0, gap-e.opts.Interval-suspended))
	}
	if e.store.LeaveMemory(ts) {
		e.reopened()
	}
	err := e.appendRound(ts, families, unread)
	for range store.Fallbacks {
		if !errors.Is(err, store.ErrFailed) {
			break
		}
		if err = e.store.Next(err); err != nil {
			return err
		}
		e.reopened()
		err = e.appendRound(ts, families, unread)
	}
	return err
}

// moveBack handles samples that are later than a round by more than a round. By how much the clock was set back is
// unknown, as after a boot or in a replay: the previous round is moved to one interval before this one.
func (e *Engine) moveBack(ts time.Time) error {
	if e.to.IsZero() || ts.UnixMilli() > e.to.UnixMilli() {
		return nil
	}
	if e.opts.Scratch == "" || e.to.Sub(ts) <= e.opts.Interval {
		return fmt.Errorf("append round of %s, previous round at %s: %w", stamp(ts), stamp(e.to), ErrTimeBackwards)
	}
	e.move(ts.Sub(e.to.Add(e.opts.Interval)))
	return nil
}

// forget discards what is known of a replaced database.
func (e *Engine) forget() {
	e.series = newSeriesCache(e.opts.Job, e.opts.Instance)
	e.from, e.to = time.Time{}, time.Time{}
	e.earlier, e.resumed = earlier{}, false
}

// reopened continues with the data of a replaced database.
func (e *Engine) reopened() {
	e.forget()
	e.from, e.to = e.storedSpan()
}

// appendRound is Append into the open database. The error wraps ErrFailed if the database failed.
func (e *Engine) appendRound(
	ts time.Time, families iter.Seq[*dto.MetricFamily], unread map[string]bool,
) error {
	if !e.store.IsOpen() {
		return store.ErrFailed
	}
	if err := errors.Join(e.restore(ts), e.resume(ts)); err != nil {
		return err
	}
	round := e.series.begin(e.store.Appender(context.Background()), ts)
	err := round.add(upMetric, nil, "", "", 1)
	if err == nil {
		err = e.addUptime(round, ts)
	}
	for f := range families {
		if err != nil {
			break
		}
		err = round.addFamily(f)
	}
	if err == nil {
		err = round.markGone()
	}
	var left map[string]labels.Labels
	if err == nil {
		left, err = round.end(e.earlier, unread)
	}
	if err != nil {
		return fmt.Errorf("append round of %s: %w", stamp(ts), errors.Join(err, round.app.Rollback()))
	}
	if err := round.app.Commit(); err != nil {
		return fmt.Errorf("commit round of %s: %w: %w", stamp(ts), store.ErrFailed, err)
	}
	round.forgetGone()
	e.earlier.exporter = left
	if dup := round.duplicates; dup != e.series.duplicates {
		e.logger.Warn("duplicate samples dropped", "samples", dup)
		e.series.duplicates = dup
	}
	if e.to.IsZero() || ts.Sub(e.to) > lookback {
		e.from = ts
	}
	e.to = ts
	return e.store.Tidy(ts)
}

// seriesCache caches the store's reference of each series, so that a round without new series builds no label set.
type seriesCache struct {
	job, instance string
	entries       map[string]*cachedSeries
	round         uint64
	duplicates    int
	key           []byte
	builder       labels.ScratchBuilder
}

type cachedSeries struct {
	ref    storage.SeriesRef
	labels labels.Labels
	round  uint64
}

func newSeriesCache(job, address string) seriesCache {
	return seriesCache{
		job: job, instance: address,
		entries: map[string]*cachedSeries{},
		builder: labels.NewScratchBuilder(16),
	}
}

// renumber forgets the references: the series are in another database.
func (c *seriesCache) renumber() {
	for _, s := range c.entries {
		s.ref = 0
	}
}

// roundAppender appends one round.
type roundAppender struct {
	*seriesCache
	app        storage.Appender
	millis     int64
	duplicates int
}

func (c *seriesCache) begin(app storage.Appender, ts time.Time) *roundAppender {
	c.round++
	return &roundAppender{seriesCache: c, app: app, millis: ts.UnixMilli()}
}

func (r *roundAppender) addFamily(f *dto.MetricFamily) error {
	name := f.GetName()
	for _, m := range f.GetMetric() {
		var err error
		switch {
		case m.Counter != nil:
			err = r.add(name, m.GetLabel(), "", "", m.Counter.GetValue())
		case m.Gauge != nil:
			err = r.add(name, m.GetLabel(), "", "", m.Gauge.GetValue())
		case m.Untyped != nil:
			err = r.add(name, m.GetLabel(), "", "", m.Untyped.GetValue())
		case m.Histogram != nil:
			err = r.addHistogram(name, m.GetLabel(), m.Histogram)
		case m.Summary != nil:
			err = r.addSummary(name, m.GetLabel(), m.Summary)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *roundAppender) addHistogram(name string, pairs []*dto.LabelPair, h *dto.Histogram) error {
	count := float64(h.GetSampleCount())
	errs := []error{
		r.add(name+"_sum", pairs, "", "", h.GetSampleSum()),
		r.add(name+"_count", pairs, "", "", count),
	}
	infinite := false
	for _, b := range h.GetBucket() {
		infinite = infinite || math.IsInf(b.GetUpperBound(), 1)
		errs = append(errs, r.add(name+"_bucket", pairs, "le", boundText(b.GetUpperBound()), float64(b.GetCumulativeCount())))
	}
	if !infinite {
		errs = append(errs, r.add(name+"_bucket", pairs, "le", "+Inf", count))
	}
	return errors.Join(errs...)
}

func (r *roundAppender) addSummary(name string, pairs []*dto.LabelPair, s *dto.Summary) error {
	errs := []error{
		r.add(name+"_sum", pairs, "", "", s.GetSampleSum()),
		r.add(name+"_count", pairs, "", "", float64(s.GetSampleCount())),
	}
	for _, q := range s.GetQuantile() {
		errs = append(errs, r.add(name, pairs, "quantile", boundText(q.GetQuantile()), q.GetValue()))
	}
	return errors.Join(errs...)
}

// add appends one sample; extraName and extraValue are the label added by a histogram or summary.
func (r *roundAppender) add(name string, pairs []*dto.LabelPair, extraName, extraValue string, v float64) error {
	key := append(r.key[:0], name...)
	for _, p := range pairs {
		key = append(append(append(key, 0xff), p.GetName()...), 0xff)
		key = append(key, p.GetValue()...)
	}
	key = append(append(append(key, 0xff), extraName...), 0xff)
	key = append(key, extraValue...)
	r.key = key

	s, known := r.entries[string(key)]
	if !known {
		s = &cachedSeries{labels: r.labelSet(name, pairs, extraName, extraValue)}
	}
	if s.round == r.round {
		r.duplicates++
		return nil
	}
	ref, err := r.app.Append(s.ref, s.labels, r.millis, v)
	if err != nil {
		return fmt.Errorf("series %s: %w", s.labels, err)
	}
	s.ref, s.round = ref, r.round
	if !known {
		r.entries[string(key)] = s
	}
	return nil
}

// labelSet returns the labels of a series after a scrape: target labels take precedence, and empty values are removed.
func (r *roundAppender) labelSet(name string, pairs []*dto.LabelPair, extraName, extraValue string) labels.Labels {
	b := &r.builder
	b.Reset()
	b.Add(model.MetricNameLabel, name)
	b.Add("instance", r.instance)
	b.Add("job", r.job)
	for _, p := range pairs {
		label := p.GetName()
		if label == "instance" || label == "job" {
			label = "exported_" + label
		}
		if p.GetValue() != "" {
			b.Add(label, p.GetValue())
		}
	}
	if extraName != "" {
		b.Add(extraName, extraValue)
	}
	b.Sort()
	return b.Labels()
}

func (r *roundAppender) markGone() error {
	for _, s := range r.entries {
		if s.round == r.round {
			continue
		}
		if _, err := r.app.Append(s.ref, s.labels, r.millis, stale()); err != nil {
			return fmt.Errorf("mark %s stale: %w", s.labels, err)
		}
	}
	return nil
}

func (r *roundAppender) forgetGone() {
	for key, s := range r.entries {
		if s.round != r.round {
			delete(r.entries, key)
		}
	}
}

// boundText formats le and quantile as Prometheus 3 normalises them on a scrape: 1 as 1.0.
func boundText(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eEIN") {
		s += ".0"
	}
	return s
}
