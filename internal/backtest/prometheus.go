package backtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/internal/words"
)

// Prometheus is a server with the query API of Prometheus.
type Prometheus struct {
	URL    string
	Client *http.Client
	Pause  time.Duration // before a failed range query is retried, since a run may take hours
}

// tries is the number of attempts of a range query.
const tries = 3

// origin identifies an exporter.
type origin struct{ Cluster, Job, Instance string }

// series is a series at the steps of a chunk; here reports whether it has a value at a step.
type series struct {
	labels map[string]string
	values []float64
	here   []bool
}

// answer is a response of the API.
type answer struct {
	Status, ErrorType, Error string
	Data                     json.RawMessage
}

// maxAnswer limits a response: a chunk of ten hosts has some 10 MiB.
const maxAnswer = 256 << 20

// errNoPath is in the error of a path that the server does not have.
var errNoPath = errors.New("no such path on the server")

// timeout of a request. Prometheus ends a query after two minutes by default.
const timeout = 150 * time.Second

func (p *Prometheus) ask(ctx context.Context, path string, form url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.URL, "/")+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	if form == nil {
		r.Method, r.Body = http.MethodGet, nil
	} else {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.Client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // the caller names the URL
			err = u.Err
		}
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("%s: response larger than %d MiB: use a longer --step", path, maxAnswer>>20)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Status == "" {
		if res.StatusCode == http.StatusNotFound {
			return fmt.Errorf("%s: %w: HTTP status 404", path, errNoPath)
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: HTTP status %s", path, words.Foreign(res.Status))
		}
		return fmt.Errorf("%s: response is not from the API of a Prometheus", path)
	}
	if a.Status != "success" {
		return fmt.Errorf("%s: %s: %s", path, a.ErrorType, a.Error)
	}
	if err := json.Unmarshal(a.Data, into); err != nil {
		return fmt.Errorf("%s: response is not from the API of a Prometheus: %w", path, err)
	}
	return nil
}

// retention returns the retention of the server; zero if unknown.
func (p *Prometheus) retention(ctx context.Context) (time.Duration, error) {
	var info struct{ StorageRetention string }
	if err := p.ask(ctx, "/api/v1/status/runtimeinfo", nil, &info); errors.Is(err, errNoPath) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(info.StorageRetention, " or ")
	d, err := model.ParseDuration(first)
	if err != nil { // by size, or none
		return 0, nil
	}
	return time.Duration(d), nil
}

// origins returns the exporters that have series.
func (p *Prometheus) origins(ctx context.Context, matchers string, from, to time.Time) ([]origin, error) {
	form := url.Values{"start": {unix(from)}, "end": {unix(to)}}
	for _, metric := range []string{"rdma_exporter_build_info", "rdma_fabric_sweep_failed"} {
		form.Add("match[]", metric+"{"+matchers+"}")
	}
	var found []map[string]string
	if err := p.ask(ctx, "/api/v1/series", form, &found); err != nil {
		return nil, err
	}
	out := map[origin]bool{}
	for _, s := range found {
		out[origin{s["cluster"], s["job"], s["instance"]}] = true
	}
	return slices.SortedFunc(maps.Keys(out), func(a, b origin) int {
		return slices.Compare([]string{a.Cluster, a.Job, a.Instance}, []string{b.Cluster, b.Job, b.Instance})
	}), nil
}

// selector selects metrics of origins that differ only in their instance.
func selector(metrics []string, of []origin) string {
	instances := words.Map(of, func(o origin) string { return regexp.QuoteMeta(o.Instance) })
	return fmt.Sprintf("{__name__=~%q,cluster=%q,job=%q,instance=~%q}",
		strings.Join(metrics, "|"), of[0].Cluster, of[0].Job, strings.Join(instances, "|"))
}

// chunk returns the series of a selector at steps times, starting at from.
func (p *Prometheus) chunk(
	ctx context.Context, query string, from time.Time, step time.Duration, steps int,
) ([]series, error) {
	form := url.Values{
		"query": {query}, "start": {unix(from)}, "end": {unix(from.Add(step * time.Duration(steps-1)))},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	for try := 1; ; try++ {
		err := p.ask(ctx, "/api/v1/query_range", form, &data)
		if err == nil {
			break
		}
		if try == tries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(p.Pause):
		}
	}
	out := make([]series, 0, len(data.Result))
	for _, r := range data.Result {
		s := series{r.Metric, make([]float64, steps), make([]bool, steps)}
		for _, pair := range r.Values {
			at, isTime := pair[0].(float64)
			text, isText := pair[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			n := int((at-float64(from.UnixMilli())/1e3)/step.Seconds() + 0.5)
			if !isTime || !isText || err != nil || n < 0 || n >= steps {
				return nil, fmt.Errorf("/api/v1/query_range: response is not from the API of a Prometheus: value %v", pair)
			}
			s.values[n], s.here[n] = v, true
		}
		out = append(out, s)
	}
	return out, nil
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', -1, 64) }
