package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/alerting"
)

// history are the samples of the rules that changed in the time before to, a line for each series.
func (d *daemon) history(ctx context.Context, to time.Time) ([]byte, error) {
	step := d.config.interval
	series, err := d.engine.Range(ctx, `{__name__=~"rdma_.+|ALERTS"}`, to.Add(-incidentHistory), to, step)
	if err != nil {
		return nil, err
	}
	return historyText(series, to.Add(-incidentHistory), to, step), nil
}

// historyText has the values of each series at the times from, from+step, …, to: "-" for no sample.
func historyText(series []alerting.Series, from, to time.Time, step time.Duration) []byte {
	b := fmt.Appendf(nil, "# Samples of the rules that changed, from %s to %s, every %s; - is no sample.\n",
		from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), step)
	n := int(to.Sub(from)/step) + 1
	for _, s := range series {
		values := make([]string, n)
		for i := range values {
			values[i] = "-"
		}
		for _, p := range s.Points {
			if i := int(p.At.Sub(from) / step); i >= 0 && i < n {
				values[i] = fmt.Sprint(p.Value)
			}
		}
		if !slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			continue
		}
		line := s.Labels["__name__"] + "{"
		for i, name := range slices.Sorted(maps.Keys(s.Labels)) {
			if name != "__name__" && name != "instance" && name != "job" {
				if i > 0 && !strings.HasSuffix(line, "{") {
					line += ","
				}
				line += fmt.Sprintf("%s=%q", name, s.Labels[name])
			}
		}
		line += "} " + strings.Join(values, " ") + "\n"
		if len(b)+len(line) > historyMax {
			return append(b, "# truncated\n"...)
		}
		b = append(b, line...)
	}
	return b
}
