// Package kill_test takes recorded healthy machines and breaks their objects: one, half and all, at the first start and
// with history. The verdict is never ok, and names an object that was broken.
package kill_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/cli"
	"rdma_exporter/test/machine"
	"rdma_exporter/test/machines"
)

var every = flag.Bool("every", false, "break every healthy machine, not a sample; make kill")

// sample are the machines of make test: InfiniBand and RoCE with GPUs, and a host without.
var sample = []string{"dgx-h100-ib", "mi300x-bnxt-ok", "homelab-cx4-qdr"}

// tree is the content of a machine in one round, by path.
type tree map[string]capture.Entry

// ways are the ways of breaking an object.
var ways = []struct {
	name string
	kind string // of the objects that are broken
	do   func(tree, target)
	// finding: with history, what is broken is a finding, not only unknown.
	finding bool
}{
	{"port down", "port", linkDown, true},
	{"slow", "port", slow, true},
	{"state unreadable", "port", stateUnreadable, false},
	{"without driver", "device", withoutDriver, true},
	{"gone from PCI", "device", leaveBus, true},
	{"GPU hidden from NVML", "gpu", hidden, true},
	{"GPU gone", "gpu", goneGPU, true},
}

// vouches reports whether the host itself says, at its first start, what the object was: what is gone from PCI without
// history may never have been there, unless another object needs it.
func vouches(way string, broken, of int) bool {
	switch way {
	case "gone from PCI", "GPU gone":
		return false
	case "slow": // by others of its board; where all are slow, check says that none vouches for their rates
		return broken < of
	}
	return true
}

// gaps are what is not found, by the beginning of a machine's name and the way, with the reason; those with "first"
// only at the first start.
var gaps = map[string]string{
	"mi300x/GPU hidden from NVML":   "NVML lists no GPU of AMD",
	"cloud-vm-ok/slow":              "rates of virtual functions are set on the hypervisor",
	"cloud-vm-ok/gone from PCI":     "a hypervisor takes virtual functions away for its maintenance",
	"mana-azure/slow":               "rates of virtual functions are set on the hypervisor",
	"mana-azure/without driver":     "a hypervisor takes the virtual function away for its maintenance",
	"mana-azure/gone from PCI":      "a hypervisor takes the virtual function away for its maintenance",
	"vm-passthrough/slow":           "rates of virtual functions are set on the hypervisor",
	"vm-passthrough/gone from PCI":  "a hypervisor takes virtual functions away for its maintenance",
	"vm-passthrough/without driver": "a hypervisor takes virtual functions away for its maintenance",
	"mlx4/slow/first":               "its ports are the first and the second of the only card",
	"optics-zoo/slow/first":         "a laboratory: five ports of unlike rates, of which nothing says what they are for",
	"ice-pfc/port down/first":       "the second port of the only card: those of many hosts have no cable",
	"ice-pfc/slow/first":            "the second port of the only card has no sibling",
	"irdma-e810/port down/first":    "the second port of the only card: those of many hosts have no cable",
	"irdma-e810/slow/first":         "the second port of the only card has no sibling",
}

func isGap(host, way string, history bool) bool {
	for key := range gaps {
		part := strings.Split(key, "/")
		if strings.HasPrefix(host, part[0]) && way == part[1] && (len(part) == 2 || !history) {
			return true
		}
	}
	return false
}

// target is an object with its places.
type target struct {
	name            string // as check names it
	device, port    string
	address, folder string // PCI address and its folder below sys/devices; empty: none
}

func TestKill(t *testing.T) {
	names := sample
	if *every {
		names = machines.Names(t)
	}
	for _, name := range names {
		a := machines.Load(t, name)
		if a.IsVariant() {
			continue
		}
		healthy := first(a)
		before := checked(t, a, healthy, nil)
		if before.Verdict != "ok" {
			if !*every {
				t.Errorf("%s: %s, want a healthy machine", name, before.Verdict)
			}
			continue
		}
		for _, way := range ways {
			targets := targetsOf(healthy, before, way.kind)
			for _, n := range shares(len(targets)) {
				for _, history := range []bool{false, true} {
					if isGap(name, way.name, history) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%d of %d/history=%t", name, way.name, n, len(targets), history), func(t *testing.T) {
						broken := maps.Clone(healthy)
						for _, x := range targets[:n] {
							way.do(broken, x)
						}
						var r check.Report
						if history {
							r = checked(t, a, healthy, broken)
						} else {
							r = checked(t, a, broken, nil)
						}
						switch {
						case history && way.finding:
							wantFinding(t, r, targets[:n])
						case history || vouches(way.name, n, len(targets)):
							wantNotOK(t, r, targets[:n])
						}
					})
				}
			}
		}
	}
}

// TestNearestNIC: a NIC that is gone at the first start is missed by the GPU at whose switch it was.
func TestNearestNIC(t *testing.T) {
	a := machines.Load(t, "dgx-h100-ib")
	healthy := first(a)
	x := targetsOf(healthy, checked(t, a, healthy, nil), "device")[0]
	broken := maps.Clone(healthy)
	leaveBus(broken, x)
	r := checked(t, a, broken, nil)
	var named []string
	for _, o := range account.Unknowns(r.Objects) {
		named = append(named, string(o.Kind)+": "+o.Reason)
	}
	const want = "[gpu: no NIC at its PCIe switch, as 7 other GPUs have]"
	if r.Verdict != "unknown" || fmt.Sprint(named) != want {
		t.Errorf("without %s: %s, %s", x.name, r.Verdict, named)
	}
}

// shares returns 1, half of n, and n.
func shares(n int) []int {
	return slices.Compact(slices.DeleteFunc([]int{min(1, n), n / 2, n}, func(i int) bool { return i == 0 }))
}

func wantFinding(t *testing.T, r check.Report, broken []target) {
	t.Helper()
	if r.Verdict != "critical" && r.Verdict != "warning" {
		t.Errorf("verdict %s", r.Verdict)
	}
	wantNamed(t, r, broken)
}

func wantNotOK(t *testing.T, r check.Report, broken []target) {
	t.Helper()
	if r.Verdict == "ok" || r.ExitCode == 0 {
		t.Errorf("verdict %s", r.Verdict)
	}
	wantNamed(t, r, broken)
}

// wantNamed wants a broken object in the text, unless the whole host has none left.
func wantNamed(t *testing.T, r check.Report, broken []target) {
	t.Helper()
	b, err := json.Marshal([]any{r.Findings, slices.DeleteFunc(slices.Clone(r.Objects), isWell)})
	must(t, err)
	for _, x := range broken {
		for _, name := range []string{x.name, x.device, x.address} {
			if name != "" && strings.Contains(string(b), name) {
				return
			}
		}
	}
	if r.NoDevice != nil {
		return
	}
	t.Errorf("no broken object is named: %s", b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// first returns the first round of a machine, without the saved state of the exporter.
func first(a *capture.Archive) tree {
	out := tree{}
	for _, e := range a.Rounds[0].Entries {
		if e.Path != "exporter/state.json" {
			out[e.Path] = e
		}
	}
	return out
}

func (x tree) entries() (out []capture.Entry) {
	for _, name := range slices.Sorted(maps.Keys(x)) {
		out = append(out, x[name])
	}
	return out
}

// missing returns the files and directories that have disappeared, without those below a missing directory.
func (x tree) missing(before tree) (out []string) {
	there := map[string]bool{".": true}
	for p := range x {
		for ; p != "."; p = path.Dir(p) {
			there[p] = true
		}
	}
	gone := map[string]bool{}
	for p := range before {
		for !there[p] && !there[path.Dir(p)] {
			p = path.Dir(p)
		}
		if !there[p] {
			gone[p] = true
		}
	}
	return slices.Sorted(maps.Keys(gone))
}

// checked returns the report of rdma_exporter check on a machine, and on what becomes of it after a minute.
func checked(t *testing.T, a *capture.Archive, before, after tree) (r check.Report) {
	t.Helper()
	b := capture.Archive{Meta: a.Meta, Rounds: []capture.Round{{Entries: before.entries()}}}
	if after != nil {
		later := capture.Round{At: time.Minute}
		for _, name := range after.missing(before) {
			later.Entries = append(later.Entries, capture.Entry{Path: name, Kind: capture.Error, Errno: syscall.ENOENT})
		}
		for name, e := range after {
			was, there := before[name]
			if !there || string(was.Data) != string(e.Data) || was.Kind != e.Kind || was.Target != e.Target {
				later.Entries = append(later.Entries, e)
			}
		}
		slices.SortFunc(later.Entries, func(a, b capture.Entry) int { return strings.Compare(a.Path, b.Path) })
		b.Rounds = append(b.Rounds, later)
	}
	file := filepath.Join(t.TempDir(), "machine.txtar")
	must(t, machine.Write(&b, file))
	var out, errs strings.Builder
	cli.Run(t.Context(), []string{"check", "--json", "--replay=" + file}, &out, &errs)
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return r
}
