//go:build !race

package machines

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/rounds"
)

// Of all mutations of a machine there are tens of thousands: make mutate makes them, in a day; make test makes a few,
// of one file of each kind.
var (
	mutateEvery  = flag.Bool("mutate-every", false, "spoil every file, not one of each kind")
	mutations    = flag.Int("mutations", 6, "mutations of each machine; 0: all")
	mutationSeed = flag.Uint64("mutation-seed", 1, "which mutations, where not all are made")
	mutateOf     = flag.String("mutate", "", "pattern of the files that are spoilt")
)

// kinds of mutations of a file.
var kinds = []struct {
	name  string
	spoil func(e *capture.Entry)
}{
	{"missing", func(e *capture.Entry) { *e = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.ENOENT} }},
	{"unreadable", func(e *capture.Entry) { *e = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.EIO} }},
	{"empty", func(e *capture.Entry) { e.Data = nil }},
	{"garbage", func(e *capture.Entry) { e.Data = []byte("\xff\xfe Gb/sec (4X ÿ)\n") }},
	{"NUL", func(e *capture.Entry) { e.Data = make([]byte, 64) }},
	{"1 MB", func(e *capture.Entry) { e.Data = []byte(strings.Repeat("1", 1<<20)) }},
	{"all ones", func(e *capture.Entry) { e.Data = []byte("18446744073709551615\n") }},
	{"minus one", func(e *capture.Entry) { e.Data = []byte("-1\n") }},
	{"directory", func(e *capture.Entry) { *e = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.EISDIR} }},
}

// ofReading are the alerts that a file that cannot be read warrants.
var ofReading = regexp.MustCompile(`RDMA(ExporterDegraded/(collector|port)|DeviceFailed/unresponsive)`)

type mutation struct {
	file    string
	kind    int  // of kinds; -1: a FIFO
	running bool // after the first round
}

func (m mutation) String() string {
	when := "at start"
	if m.running {
		when = "running"
	}
	kind := "FIFO"
	if m.kind >= 0 {
		kind = kinds[m.kind].name
	}
	return fmt.Sprintf("%s %s %s", m.file, kind, when)
}

// digits are those of devices, ports and entries: files that differ in them alone are one kind of file.
var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// kindOf returns the kind of a file; a sample takes one file of each kind.
func kindOf(file string) string {
	if *mutateEvery {
		return file
	}
	return digits.ReplaceAllString(file, "0")
}

// mutationsOf returns all mutations of a machine: the last file of each kind, damaged in each way, before the first
// round and after it.
func mutationsOf(a *capture.Archive, of *regexp.Regexp) (out []mutation) {
	last := map[string]string{}
	for _, e := range a.Rounds[0].Entries {
		if e.Kind == capture.File && strings.Contains(e.Path, "/") && of.MatchString(e.Path) {
			last[kindOf(e.Path)] = e.Path
		}
	}
	var files []string
	for _, f := range last {
		files = append(files, f)
	}
	slices.Sort(files)
	for _, f := range files {
		for k := range kinds {
			out = append(out, mutation{f, k, false}, mutation{f, k, true})
		}
	}
	return out
}

// spoilt returns a machine with a mutation, all rounds of it from where it begins.
func (m mutation) spoilt(t *testing.T, name string) *capture.Archive {
	a := Load(t, name)
	first := a.Rounds[0].Entries[slices.IndexFunc(a.Rounds[0].Entries,
		func(e capture.Entry) bool { return e.Path == m.file })]
	kinds[m.kind].spoil(&first)
	for i := range a.Rounds {
		r := &a.Rounds[i]
		if i == 0 && m.running {
			continue
		}
		r.Entries = slices.DeleteFunc(r.Entries, func(e capture.Entry) bool { return e.Path == m.file })
		if begins := i == 0 || i == 1 && m.running; begins {
			r.Entries = append(r.Entries, first)
		}
	}
	if !m.running && kinds[m.kind].name == "missing" {
		a.Rounds[0].Entries = slices.DeleteFunc(a.Rounds[0].Entries, func(e capture.Entry) bool { return e.Path == m.file })
	}
	return a
}

// TestMutationsOfMachines spoils a file of a machine, at the start or while it is watched. The exporter lives on,
// nothing of severity warning or critical fires that did not before, and other devices lose no sample.
func TestMutationsOfMachines(t *testing.T) {
	of, err := regexp.Compile(*mutateOf)
	must(t, err)
	for _, name := range []string{"dgx-h100-ib", "lossless-ok", "l40s-ok"} {
		t.Run(name, func(t *testing.T) {
			all := mutationsOf(Load(t, name), of)
			if *mutations > 0 {
				random := rand.New(rand.NewPCG(*mutationSeed, 0))
				random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				all = all[:min(*mutations, len(all))]
			}
			whole := played(t, name)
			for _, mu := range all {
				t.Run(mu.String(), func(t *testing.T) {
					t.Parallel()
					mu.test(t, name, whole)
				})
			}
		})
	}
}

func (m mutation) test(t *testing.T, name string, whole recording) {
	machine, sched := Open(t, Written(t, m.spoilt(t, name)))
	var series []string
	last := machine.Player.Last()
	_, loud, _ := evaluated(t, machine, sched, func(at time.Time, p *rounds.Picture) {
		if at.Equal(last) {
			series = SeriesOf(p.Families)
		}
	})
	for alert := range loud {
		if !slices.Contains(whole.findings, alert) && !ofReading.MatchString(alert) {
			t.Errorf("fires: %s", alert)
		}
	}
	there := map[string]bool{}
	for _, s := range series {
		key, _, _ := strings.Cut(s, "} ")
		there[key] = true
	}
	device := deviceOf(m.file)
	for _, s := range whole.series {
		key, _, _ := strings.Cut(s, "} ")
		other := deviceLabel.FindStringSubmatch(s)
		if device != "" && other != nil && other[1] != device && !there[key] && !ofOthers.MatchString(s) {
			t.Errorf("lost: %s", s)
		}
	}
}

// ofOthers are the samples of a device that rest on other devices.
var ofOthers = regexp.MustCompile(`_expected_|_peers_active|^rdma_port_info|^rdma_gdr_`)

var deviceLabel = regexp.MustCompile(`[{,]device="([^"]+)"`)

var devicePath = regexp.MustCompile(`/infiniband/([^/]+)/`)

// deviceOf returns the RDMA device that a file is below; empty: none.
func deviceOf(file string) string {
	if m := devicePath.FindStringSubmatch(file); m != nil {
		return m[1]
	}
	return ""
}
