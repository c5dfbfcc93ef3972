// Command compare compares two builds of the exporter on the recorded machines: the metrics of each machine, and the
// report of check. It is for changes that must not affect either; exit code 1 means that something differs.
//
//	go run ./test/compare -before OLD/rdma_exporter,OLD/fixtures/sysfs -after NEW/rdma_exporter,NEW/fixtures/sysfs
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/test/port"
)

// build is a binary and its directory of recorded machines.
type build struct{ binary, machines string }

func (b *build) String() string { return b.binary + "," + b.machines }

// Set parses BINARY,DIRECTORY.
func (b *build) Set(s string) (err error) {
	binary, machines, ok := strings.Cut(s, ",")
	if !ok {
		return errors.New("BINARY,FOLDER is wanted")
	}
	b.binary, err = filepath.Abs(binary)
	b.machines = machines
	return err
}

func main() {
	var before, after build
	flag.Var(&before, "before", "the binary and the folder of machines from before, BINARY,FOLDER")
	flag.Var(&after, "after", "the same of now")
	only := flag.String("run", "", "a regular expression: machines to compare")
	flag.Parse()
	if before.binary == "" || after.binary == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	differ, err := compare(context.Background(), before, after, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if differ {
		os.Exit(1)
	}
}

// compare prints a line for each machine, and the differing lines.
func compare(ctx context.Context, before, after build, only string) (differ bool, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	names, added, err := shared(before, after)
	if err != nil {
		return false, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !match.MatchString(n) })
	lines, errs := make([][]string, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			lines[i], errs[i] = differences(ctx, before, after, name)
		})
	}
	wg.Wait()
	equal := 0
	for i, name := range names {
		if len(lines[i]) == 0 && errs[i] == nil {
			equal++
			continue
		}
		fmt.Printf("%s\n", name)
		for _, l := range lines[i] {
			fmt.Printf("  %s\n", l)
		}
	}
	for _, n := range added {
		fmt.Printf("in one folder only: %s\n", n)
	}
	fmt.Printf("%d machines, %d equal in metrics and findings\n", len(names), equal)
	return equal < len(names), errors.Join(errs...)
}

// shared lists the machines in both directories, and those in one only.
func shared(before, after build) (both, one []string, err error) {
	list := func(dir string) []string {
		files, globErr := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err = errors.Join(err, globErr); len(files) == 0 {
			err = errors.Join(err, fmt.Errorf("%s: no recorded machines", dir))
		}
		for i, f := range files {
			files[i] = strings.TrimSuffix(filepath.Base(f), ".txtar")
		}
		return files
	}
	old, now := list(before.machines), list(after.machines)
	for _, n := range old {
		if slices.Contains(now, n) {
			both = append(both, n)
		} else {
			one = append(one, n)
		}
	}
	for _, n := range now {
		if !slices.Contains(old, n) {
			one = append(one, n)
		}
	}
	return both, one, err
}

// differences returns the lines that only one of the builds prints.
func differences(ctx context.Context, before, after build, name string) (lines []string, err error) {
	old, err := before.shows(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s, before: %w", name, err)
	}
	now, err := after.shows(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s, after: %w", name, err)
	}
	for _, side := range []struct {
		mark          string
		lines, others []string
	}{{"- ", old, now}, {"+ ", now, old}} {
		count := map[string]int{}
		for _, l := range side.others {
			count[l]++
		}
		for _, l := range side.lines {
			if count[l]--; count[l] < 0 {
				lines = append(lines, side.mark+l)
			}
		}
	}
	return lines, nil
}

// shows returns the output of a build for a machine, by line.
func (b build) shows(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	file := filepath.Join(b.machines, name+".txtar")
	metrics, err := b.metrics(ctx, file)
	if err != nil {
		return nil, err
	}
	findings, err := b.findings(ctx, file)
	return append(metrics, findings...), err
}

// ofTheRun are samples that depend on the run, and comments (covered by docs/metrics.md).
var ofTheRun = regexp.MustCompile(`^(#|go_|process_|promhttp_|rdma_exporter_build_info|rdma_scrape_(collector_duration|collector_age|source|device)_seconds|rdma_transceiver_age_seconds|rdma_exporter_(cpu|memory|goroutines)|rdma_host_uptime_seconds)`)

// valueless is a sample whose value is a time: a recording ends when it is replayed.
var valueless = regexp.MustCompile(`^([a-z_]+_(?:timestamp|start_time)_seconds(?:\{.*\})?) \S+$`)

// metrics returns the samples of a machine.
func (b build) metrics(ctx context.Context, file string) ([]string, error) {
	state, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state)
	cmd := exec.CommandContext(ctx, b.binary, "serve", "--replay="+file, "--state.dir="+state, "--no-alerting",
		"--no-web.exporter-metrics", "--web.listen-address="+port.Any)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	addresses, err := port.Await(ctx, cmd.Process.Pid, 1)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addresses[0]+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if !ofTheRun.MatchString(line) {
			lines = append(lines, valueless.ReplaceAllString(strings.TrimSuffix(line, "\n"), "$1 (a time)"))
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s serves nothing of %s", b.binary, file)
	}
	return lines, nil
}

// findings returns the lines of the report of check, without times.
func (b build) findings(ctx context.Context, file string) ([]string, error) {
	cmd := exec.CommandContext(ctx, b.binary, "check", "--replay="+file, "--json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	var report map[string]any
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, fmt.Errorf("check --json: %w: %s", err, errs.String())
	}
	delete(report, "exporter")
	delete(report, "replay")
	var lines []string
	leaves("", timeless(report), func(line string) { lines = append(lines, line) })
	return lines, nil
}

// moment is a time in the format of Go or JSON.
var moment = regexp.MustCompile(`(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)`)

// timeless removes times from a JSON value.
func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = timeless(x)
		}
	case []any:
		for i, x := range v {
			v[i] = timeless(x)
		}
	case string:
		return moment.ReplaceAllString(v, "(a time)")
	}
	return v
}

// leaves calls line for each member of the report, and for each element of its lists.
func leaves(name string, v any, line func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if name == "" {
			for k, x := range v {
				leaves(k, x, line)
			}
			return
		}
	case []any:
		for _, x := range v {
			leaves(name, x, func(l string) { line(l) })
		}
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(err.Error())
	}
	line("check " + name + ": " + string(b))
}
