//go:build gpu

// Package gpu compares the exporter's metrics of GPUs with nvidia-smi in the same minute, on a machine with GPUs: make
// gpu-proof. That machine needs no Go: compile the test, and copy it there with the exporter.
package gpu

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	programs "rdma_exporter/test/program"
)

// exporter is a running exporter.
type exporter struct {
	url   string
	pid   int
	state string // directory
}

// program returns the exporter under test: RDMA_EXPORTER, or else in the directory of this test.
func program(t *testing.T) string {
	t.Helper()
	p := os.Getenv("RDMA_EXPORTER")
	if p == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p = filepath.Join(filepath.Dir(self), "rdma_exporter")
	}
	return programs.Built(t, p, "make gpu-proof builds it beside this test, RDMA_EXPORTER names another one")
}

// out returns a file for reading, below OUT if that is set.
func out(t *testing.T, name string, content []byte) string {
	t.Helper()
	dir := os.Getenv("OUT")
	if dir == "" {
		dir = t.TempDir()
	}
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

var address = regexp.MustCompile(`address=(?:\[::\]|127\.0\.0\.1):([0-9]+)`)

// serve starts the exporter on a free port.
func serve(t *testing.T, args ...string) *exporter {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it is interrupted below, after the test has ended
	state := t.TempDir()
	cmd := exec.CommandContext(ctx, program(t),
		append([]string{"--web.listen-address=127.0.0.1:0", "--state.dir=" + state}, args...)...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the exporter ended with: %v", err)
		}
	})
	port := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			fmt.Fprintln(os.Stderr, "exporter:", lines.Text())
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case port <- m[1]:
				default:
				}
			}
		}
	}()
	select {
	case p := <-port:
		return &exporter{"http://127.0.0.1:" + p, cmd.Process.Pid, state}
	case <-time.After(time.Minute):
		t.Fatal("the exporter does not listen after a minute")
		return nil
	}
}

// command runs a command that reaches the exporter through its state directory, and returns its exit code and text.
func (e *exporter) command(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{"--state.dir=" + e.state}, args...)...)
	text, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// ask makes a request and returns its status and text.
func (e *exporter) ask(t *testing.T, method, path string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// metrics are the samples of a scrape, named as by series.
type metrics map[string]float64

var labelInText = regexp.MustCompile(`[A-Za-z_]+="(?:[^"\\]|\\.)*"`)

// seriesName returns a name with sorted labels.
func seriesName(name string, labels ...string) string {
	slices.Sort(labels)
	if len(labels) == 0 {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

// is returns a label matcher.
func is(name, value string) string { return fmt.Sprintf("%s=%q", name, value) }

func (e *exporter) scrape(t *testing.T) metrics {
	t.Helper()
	code, text := e.ask(t, "GET", "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	return parse(t, text)
}

func parse(t *testing.T, text string) metrics {
	t.Helper()
	m := metrics{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name, _, _ := strings.Cut(line[:i], "{")
		m[seriesName(name, labelInText.FindAllString(line[:i], -1)...)] = v
	}
	return m
}

// family lists the series of a metric.
func (m metrics) family(name string) (all []string) {
	for s := range m {
		if s == name || strings.HasPrefix(s, name+"{") {
			all = append(all, s)
		}
	}
	return all
}

// wait scrapes until a condition is true.
func (e *exporter) wait(t *testing.T, what string, holds func(metrics) bool) metrics {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		m := e.scrape(t)
		if holds(m) {
			return m
		}
		if time.Now().After(end) {
			t.Fatalf("two minutes without: %s", what)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// held returns the devices of the driver that the exporter has open.
func (e *exporter) held(t *testing.T) (devices []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", e.pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && strings.HasPrefix(to, "/dev/nvidia") {
			devices = append(devices, to)
		}
	}
	return devices
}

// status returns a line of /proc/PID/status.
func (e *exporter) status(t *testing.T, key string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// children returns the number of page faults of the exporter's ended children: 0 if there were none. proc_pid_stat(5),
// cminflt.
func (e *exporter) children(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return fields[8]
}

// installed returns the path of a program that is part of the driver or the machine's image.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: make gpu-proof is for a machine with NVIDIA's driver, and python3 with PyTorch", name)
	}
	return path
}

func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), installed(t, name), args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return b
}
