//go:build scale

package scale

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cost is what one refresh of a dashboard takes, with everything chosen.
type cost struct {
	dashboard string
	queries   int
	sum       time.Duration
	slowest   time.Duration
	panel     string // the slowest one
	series    int    // most of one query
}

// board is the part of a dashboard that a refresh runs. Rows that are collapsed run nothing until they are opened; here
// they are open.
type board struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title         string
	MaxDataPoints int
	Panels        []panel
	Targets       []struct {
		Expr    string
		Instant bool
	}
}

// pixels are the points that Grafana requests for a panel without a limit: one for each pixel of half a wide screen.
const pixels = 720

// everything chooses all of each variable of several values, and one host.
func everything(scrape, span time.Duration) *strings.Replacer {
	return strings.NewReplacer("$cluster", ".*", "$job", "rdma_exporter", "$fabric_job", "rdma_exporter", "$hosts", ".*",
		"$host", "gpu-0001:10879",
		"$fabric", "none", "$device", ".*", "$switch", ".*", "$$__all", "all",
		"$__rate_interval", fmt.Sprintf("%.0fs", (4*scrape).Seconds()), "$__range", fmt.Sprintf("%.0fs", span.Seconds()))
}

// dashboards runs each query of each dashboard once over the time that was scraped. As many steps are evaluated as
// Grafana requests.
func (p prometheus) dashboards(t *testing.T, began time.Time) (out []cost) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "dashboards/*.json"))
	must(t, err)
	end := time.Now()
	chosen := everything(*interval, end.Sub(began))
	for _, f := range files {
		var d board
		b, err := os.ReadFile(f)
		must(t, err)
		must(t, json.Unmarshal(b, &d))
		c := cost{dashboard: d.Title}
		for _, row := range d.Panels {
			for _, shown := range append(row.Panels, row) {
				steps := shown.MaxDataPoints
				if steps == 0 {
					steps = pixels
				}
				for _, q := range shown.Targets {
					form := url.Values{"query": {chosen.Replace(q.Expr)}}
					path := "/api/v1/query"
					if q.Instant {
						form.Set("time", unix(end))
					} else {
						path = "/api/v1/query_range"
						form.Set("start", unix(began))
						form.Set("end", unix(end))
						form.Set("step", strconv.FormatFloat(end.Sub(began).Seconds()/float64(steps), 'f', 3, 64))
					}
					c.add(shown.Title, p.timed(t, path, form))
				}
			}
		}
		out = append(out, c)
	}
	return out
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// answer is what a query took and returned.
type answer struct {
	took   time.Duration
	series int
}

// timed runs one query. An error fails the test: the query is invalid, or exceeds the time or samples that Prometheus
// permits.
func (p prometheus) timed(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	began := time.Now()
	body, err := get(t.Context(), string(p)+path+"?"+form.Encode())
	if err != nil {
		t.Errorf("%s: %v", form.Get("query"), err)
		return answer{took: time.Since(began)}
	}
	var a struct {
		Data struct{ Result []json.RawMessage }
	}
	must(t, json.Unmarshal(body, &a))
	return answer{time.Since(began), len(a.Data.Result)}
}

func (c *cost) add(title string, a answer) {
	c.queries++
	c.sum += a.took
	c.series = max(c.series, a.series)
	if a.took > c.slowest {
		c.slowest, c.panel = a.took, title
	}
}
