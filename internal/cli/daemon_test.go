package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/verdict"
)

// checked returns the report that check prints with the URL of a daemon.
func checked(t *testing.T, daemon string, args ...string) (r check.Report, errs string) {
	t.Helper()
	code, out, errs := runProgram(t,
		append([]string{"--state.dir=" + t.TempDir(), "check", "--json", "--daemon=" + daemon}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.ExitCode != code {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, out, errs)
	}
	return r, errs
}

// unanswered compares the report on a host whose exporter does not answer.
func unanswered(t *testing.T, r check.Report, errs, url, reason string) {
	t.Helper()
	want := check.New(check.Input{})
	want.Exporter, want.Host = verdict.Build(), strings.TrimPrefix(url, "http://")
	want.Verdict, want.Headline, want.ExitCode = "unknown", "unknown", check.ExitUnknown
	want.Source = &check.Source{Kind: check.SourceDaemon, URL: url}
	want.Error, want.Time = r.Error, r.Time
	if !reflect.DeepEqual(r, want) || errs != "" {
		t.Errorf("%+v\nwant %+v\n%s", r, want, errs)
	}
	if !strings.HasPrefix(r.Error, "query exporter "+url+"/api/v1/findings: ") || !strings.Contains(r.Error, reason) ||
		r.Drain != "unknown" || r.Fit != nil || time.Since(r.Time) > time.Hour {
		t.Errorf("drain %s, fit %v, %s, want %s", r.Drain, r.Fit, r.Error, reason)
	}
}

// TestNoDaemon: nobody listens there. Every form of the answer is unknown, with the URL and the error.
func TestNoDaemon(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	r, errs := checked(t, s.URL)
	unanswered(t, r, errs, s.URL, "connection refused")
	r, errs = checked(t, s.URL, "--only=RDMAPortDown", "--strict", "--severity=critical")
	unanswered(t, r, errs, s.URL, "connection refused")
	reason := "query exporter " + s.URL + "/api/v1/findings: dial tcp " + strings.TrimPrefix(s.URL, "http://") +
		": connect: connection refused\n"
	for args, want := range map[string]string{
		"check":                     "127.0.0.1: unknown: " + reason,
		"check --drain":             "127.0.0.1: drain unknown, do not drain: " + reason,
		"check --return-to-service": "127.0.0.1: not fit for service\nreason: state unknown: " + reason,
	} {
		code, out, errs := runProgram(t, append(strings.Fields(args), "--state.dir="+t.TempDir(), "--daemon="+s.URL)...)
		if code != check.ExitUnknown || out != want || errs != "" {
			t.Errorf("%s: exit %d\n%q\nwant\n%q\n%s", args, code, out, want, errs)
		}
	}
	code, out, errs := runProgram(t, "--state.dir="+t.TempDir(), "job", "--no-nccl", "--daemon="+s.URL)
	want := "\nFindings are unknown or incomplete: " + reason
	if code != check.ExitUnknown || !strings.HasSuffix(out, want) || errs != "" {
		t.Errorf("job: exit %d: %s%s", code, out, errs)
	}
}

// TestDaemonContradicted: flags by which a command reads this host or a replay itself are refused with --daemon.
func TestDaemonContradicted(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	for command, c := range map[string]struct {
		exit  int
		flags []string
	}{
		"check": {check.ExitUnknown, []string{"--for=1m", "--setup"}},
		"job":   {2, nil},
	} {
		for _, flag := range append(c.flags, "--no-daemon", "--replay=demo", "--path.rootfs=/x", "--path.sysfs=/x",
			"--path.procfs=/x", "--config.file=/x", "--device.include=mlx5_0",
			"--device.exclude=mlx5_0", "--collector.disable-defaults", "--collector.gpu", "--no-collector.gpu") {
			code, out, errs := runProgram(t, command, flag, "--daemon="+s.URL)
			name, _, _ := strings.Cut(strings.Replace(flag, "--no-c", "--c", 1), "=")
			if want := "rdma_exporter " + command + ": --daemon=" + s.URL + ": cannot be combined with " + name +
				", whose result would not be that of the exporter\n"; code != c.exit || out != "" || errs != want {
				t.Errorf("%s %s: exit %d, %s%s\nwant %s", command, flag, code, out, errs, want)
			}
		}
	}
	if asked != 0 {
		t.Errorf("%d requests", asked)
	}
}
