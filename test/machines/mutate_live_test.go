//go:build !race

package machines

import (
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/verdict"
)

// TestFIFOsOfMachines puts a FIFO in the place of a file, at the start or while it is watched: a read that does not
// return costs its device, nothing of severity warning or critical fires beside what says so, and rounds end.
func TestFIFOsOfMachines(t *testing.T) {
	of, err := regexp.Compile(*mutateOf)
	must(t, err)
	for _, name := range []string{"dgx-h100-ib", "lossless-ok", "l40s-ok"} {
		t.Run(name, func(t *testing.T) {
			dir := Tree(t, name)
			before := loudLive(t, dir, nil, nil)
			files := kindsOfFiles(t, dir, of)
			if *mutations > 0 {
				random := rand.New(rand.NewPCG(*mutationSeed, 0))
				random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
				files = files[:min((*mutations+5)/6, len(files))]
			}
			for _, f := range files {
				for _, running := range []bool{false, true} {
					t.Run(mutation{f, -1, running}.String(), func(t *testing.T) {
						file, aside := filepath.Join(dir, f), filepath.Join(dir, "aside")
						spoil := func() {
							must(t, os.Rename(file, aside))
							must(t, syscall.Mkfifo(file, 0o644))
						}
						defer func() {
							letGo(t, file)
							must(t, os.Rename(aside, file))
						}()
						start, later := spoil, func() {}
						if running {
							start, later = later, start
						}
						for alert := range loudLive(t, dir, start, later) {
							if !before[alert] && !ofReading.MatchString(alert) {
								t.Errorf("fires: %s", alert)
							}
						}
					})
				}
			}
		})
	}
}

// kindsOfFiles returns one file of each kind in a tree.
func kindsOfFiles(t *testing.T, dir string, of *regexp.Regexp) (out []string) {
	t.Helper()
	seen := map[string]bool{}
	must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if kind := kindOf(rel); err == nil && !seen[kind] && of.MatchString(rel) {
			seen[kind] = true
			out = append(out, rel)
		}
		return err
	}))
	slices.Sort(out)
	return out
}

// letGo ends the reads of a FIFO, and removes it.
func letGo(t *testing.T, fifo string) {
	t.Helper()
	gone := fifo + ".gone"
	must(t, os.Rename(fifo, gone))
	for quiet := 0; quiet < 3; time.Sleep(5 * time.Millisecond) {
		w, err := os.OpenFile(gone, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) { // nobody reads
			quiet++
			continue
		}
		must(t, err)
		must(t, w.Close())
	}
	must(t, os.Remove(gone))
}

// loudLive watches a tree for 20 minutes of its clock, and returns what fires then above severity info. Start is done
// before the first round, later after the third.
func loudLive(t *testing.T, dir string, start, later func()) map[string]bool {
	t.Helper()
	if start != nil {
		start()
	}
	s := Live(t, dir, 300*time.Millisecond)
	j, err := verdict.New(&machine.Machine{Host: s.Host}, s, Builtin(t), slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, j.Close()) }()
	begin := time.Now()
	var ahead atomic.Int64
	s.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	for i := range 12 {
		at := begin.Add(time.Duration(i) * 2 * time.Minute)
		ahead.Store(int64(time.Until(at)))
		must(t, j.Round(t.Context(), at))
		if i == 2 && later != nil {
			later()
		}
	}
	out := map[string]bool{}
	for _, a := range j.Engine.Alerts() {
		if severity := a.Labels["severity"]; a.State == alerting.StateFiring &&
			(severity == "warning" || severity == "critical") {
			out[Describe(a)] = true
		}
	}
	return out
}
