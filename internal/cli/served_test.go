//go:build !race

package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/verdict"
	"rdma_exporter/test/machines"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// TestServedRunbooks: alerts of the API link to the page of the daemon, which is there, leads back, and has the policy
// of all pages.
func TestServedRunbooks(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("downshift-one"), "--web.external-url=https://proxy.example/gpu-1/")
	body := s.await(t, "/gpu-1/api/v1/alerts", "RDMALinkDegraded")
	if !strings.Contains(body, `"runbook_url":"https://proxy.example/gpu-1/runbooks/RDMALinkDegraded"`) {
		t.Errorf("%s", body)
	}
	_, first, _ := s.get(t, "/gpu-1/")
	if !strings.Contains(first, `href="runbooks/RDMALinkDegraded"`) || strings.Contains(first, "proxy.example") {
		t.Error("the page does not link relatively")
	}
	for _, name := range runbooks.Names() {
		status, text, h := s.get(t, "/gpu-1/runbooks/"+name)
		if status != http.StatusOK || !strings.Contains(text, "<h1>"+name+"</h1>") ||
			!strings.Contains(text, `<a href="../">`) || h.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", name, status, h)
		}
		if strings.Count(text, "<script") != 1 { // copy.js
			t.Errorf("%s has scripts", name)
		}
		for _, no := range []string{"style=", `.md"`, "raw HTML omitted"} {
			if strings.Contains(text, no) {
				t.Errorf("%s has %s", name, no)
			}
		}
	}
}

// TestModulesAreNotRead: an interval of 0s switches their collector off, which is reported.
func TestModulesAreNotRead(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("optics-hot"), "--transceiver.interval=0s")
	_, body, _ := s.get(t, "/metrics")
	if !strings.Contains(body, `{alert="RDMATransceiverHot",fault="alarm",reason="collector_disabled"} 1`) ||
		strings.Contains(body, "\nrdma_transceiver_") {
		t.Errorf("%.2000s", body)
	}
}

// TestFormats: what the text writers serve is what Prometheus' own parser and encoder make of it, with gzip and
// without.
func TestFormats(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("hgx-h200-roce"))
	for accept, contentType := range map[string]string{
		"": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5":                  "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
	} {
		t.Run(strings.Split(contentType, ";")[0], func(t *testing.T) {
			status, body, h := s.get(t, "/metrics", "Accept", accept)
			if status != 200 || h.Get("Content-Type") != contentType {
				t.Errorf("Accept %q: status %d, Content-Type %q, want %q", accept, status, h.Get("Content-Type"), contentType)
			}
			if strings.Contains(contentType, "openmetrics") {
				if !strings.HasSuffix(body, "\n# EOF\n") || strings.Count(body, "# EOF") != 1 {
					t.Error("OpenMetrics does not end with one # EOF")
				}
			} else {
				families := 0
				d := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(h))
				samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, decodeAll(t, d)...)
				must(t, err)
				for range samples {
					families++
				}
				if families < 700 {
					t.Errorf("Accept %q: %d samples", accept, families)
				}
			}
			_, packed, h := s.get(t, "/metrics", "Accept", accept, "Accept-Encoding", "gzip")
			if h.Get("Content-Encoding") != "gzip" {
				t.Fatalf("not compressed: %v", h)
			}
			z, err := gzip.NewReader(strings.NewReader(packed))
			must(t, err)
			plain, err := io.ReadAll(z)
			must(t, err)
			if len(plain) < len(body)/2 || len(packed) > len(plain)/3 {
				t.Errorf("%d bytes packed, %d unpacked, %d plain", len(packed), len(plain), len(body))
			}
		})
	}
}

func TestRoutePrefix(t *testing.T) {
	s := startProgram(t, "--replay="+machines.Fixture("no-rdma"), "--web.external-url=http://example.org/rdma/",
		"--web.telemetry-path=/m", "--web.pprof", "--no-web.exporter-metrics")
	for path, want := range map[string]int{
		"/rdma/m": 200, "/rdma/": 200, "/rdma/-/healthy": 200, "/rdma/debug/pprof/": 200, "/rdma/debug/pprof/nothing": 404,
		"/metrics": 404, "/m": 404,
	} {
		if status, _, _ := s.get(t, path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
	if _, body, _ := s.get(t, "/rdma/m"); strings.Contains(body, "process_") {
		t.Error("--no-web.exporter-metrics serves process_*")
	}
}

// TestGPUReleaseOverHTTP: with --web.enable-lifecycle the request says what it did, or why it did nothing.
func TestGPUReleaseOverHTTP(t *testing.T) {
	live := startProgram(t, "--no-alerting", "--web.enable-lifecycle")
	replay := startProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), "--web.enable-lifecycle")
	for _, c := range []struct {
		name   string
		s      *server
		query  string
		status int
		text   string
	}{
		{"30m", live, "?for=30m", 200, "released: the exporter uses no GPU for 30m; for=0s ends the release\n"},
		{"end", live, "?for=0s", 200, "release ended, GPUs are read again\n"},
		{"no time", live, "", 400, "must be a duration up to 24h"},
		{"not a time", live, "?for=soon", 400, "for=soon: must be"},
		{"negative", live, "?for=-1s", 400, "for=-1s: must be"},
		{"too long", live, "?for=25h", 400, "for=25h: release too long: must end within 24h of its start"},
		{"replay", replay, "?for=30m", 503, "cannot release the GPUs: a replay holds no GPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if status, body := c.s.post(t, "/-/gpu/release"+c.query); status != c.status || !strings.Contains(body, c.text) {
				t.Errorf("%q: status %d, %q", c.query, status, body)
			}
		})
	}
	if status, _, h := live.get(t, "/-/gpu/release?for=30m"); status != 405 || h.Get("Allow") != "POST" {
		t.Errorf("GET: status %d, allows %q", status, h.Get("Allow"))
	}
	if log := live.log.String(); !strings.Contains(log, `by="HTTP client 127.0.0.1"`) {
		t.Errorf("the log does not name the client:\n%s", log)
	}
}

// TestGPUMode: full mode serves more, and another mode is refused.
func TestGPUMode(t *testing.T) {
	const memory = `rdma_gpu_memory_used_bytes{`
	for mode, want := range map[string]bool{"fabric": false, "full": true} {
		t.Run(mode, func(t *testing.T) {
			s := startProgram(t, "--replay="+machines.Fixture("dgx-h100-ib"), "--collector.gpu.mode="+mode)
			if _, body, _ := s.get(t, "/metrics"); strings.Contains(body, memory) != want ||
				!strings.Contains(body, "rdma_gpu_pcie_width_lanes{") {
				t.Errorf("memory: %v", !want)
			}
		})
	}
	if code, _, errs := runProgram(t, "--collector.gpu.mode=all", "check"); code != 3 ||
		!strings.Contains(errs, "fabric, full") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := runProgram(t, "--collector.gpu.interval=0s"); code != 2 ||
		!strings.Contains(errs, "--collector.gpu.interval=0s: must be") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestSeriesAreThoseOfAScrape: the rules see each series with the labels, byte for byte, that a central Prometheus
// gives it.
func TestSeriesAreThoseOfAScrape(t *testing.T) {
	m, sched := machines.Open(t, machines.Fixture(storm))
	j, err := verdict.New(m, sched, machines.Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer j.Close()
	at := m.Player.Times()[0]
	must(t, j.Round(t.Context(), at))
	p, err := sched.Collect(t.Context(), nil)
	must(t, err)
	want := map[string]bool{
		labels.FromStrings("__name__", "up", "instance", m.Instance(nil), "job", "rdma_exporter").String(): true,
	}
	text := expfmt.NewDecoder(bytes.NewReader(exposition.AppendText(nil, p.Families)),
		expfmt.NewFormat(expfmt.TypeTextPlain))
	scraped, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, decodeAll(t, text)...)
	must(t, err)
	for _, series := range scraped {
		// As scrape.mutateSampleLabels, where the target has labels that no series has.
		b := labels.NewBuilder(labels.EmptyLabels())
		for name, value := range series.Metric {
			b.Set(string(name), string(value))
		}
		b.Set("instance", m.Instance(nil))
		b.Set("job", "rdma_exporter")
		want[b.Labels().String()] = true
	}
	samples, err := j.Engine.Query(t.Context(), `{__name__=~"up|rdma_.*",__name__!~"rdma_.*:.*"}`, at)
	must(t, err)
	got := map[string]bool{}
	for _, s := range samples {
		got[labels.FromMap(s.Labels).String()] = true
	}
	for _, x := range []struct {
		what string
		a, b map[string]bool
	}{{"the rules lack", want, got}, {"only the rules have", got, want}} {
		for _, series := range slices.Sorted(maps.Keys(x.a)) {
			// Those begin with their first request.
			if !x.b[series] && !strings.HasPrefix(series, `{__name__="rdma_scrape_source`) &&
				!strings.HasPrefix(series, `{__name__="rdma_scrape_device`) {
				t.Errorf("%s %s", x.what, series)
			}
		}
	}
	if len(got) < 1000 {
		t.Errorf("%d series", len(got))
	}
}

func decodeAll(t *testing.T, d expfmt.Decoder) (out []*dto.MetricFamily) {
	t.Helper()
	for {
		var mf dto.MetricFamily
		switch err := d.Decode(&mf); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, &mf)
	}
}
