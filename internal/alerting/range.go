package alerting

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Series is one element of a range query's result.
type Series struct {
	Labels map[string]string
	Points []Point // sorted by time; times without a value are omitted
}

// Range evaluates a range query, sorted by labels.
func (e *Engine) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	q, err := e.engine.NewRangeQuery(ctx, e.store, nil, query, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	defer q.Close()
	matrix, err := q.Exec(ctx).Matrix()
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", query, err)
	}
	slices.SortFunc(matrix, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
	out := make([]Series, 0, len(matrix))
	for _, s := range matrix {
		points := make([]Point, len(s.Floats))
		for i, p := range s.Floats {
			points[i] = Point{time.UnixMilli(p.T), p.F}
		}
		out = append(out, Series{s.Metric.Map(), points})
	}
	return out, nil
}
