package capture

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// What the tests of single types call. The types are written by their tags.

// TestErrorsOfEntries: an error names the entry, the line, the key and the reason.
func TestErrorsOfEntries(t *testing.T) {
	of := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			of(decode[host.RDMAPort]("rdma/a/1/port", []byte("state: 4\nlid: x\n"))),
			`parse rdma/a/1/port: malformed: line 2: "lid": "x" is not a number`,
		},
		{
			of(decode[host.RDMAPort]("rdma/a/1/port", []byte("state\n"))),
			`parse rdma/a/1/port: malformed: line 1: "state": not KEY: VALUE`,
		},
		{
			of(decode[[]host.Stat]("rdma/a/1/stats", []byte("a: b: -1\n"))),
			`parse rdma/a/1/stats: malformed: line 1: "a: b": "-1" is not a number`,
		},
		{
			of(decode[[]host.RDMAHolder]("rdma/a/holders", []byte("1: contexts=1 queues=1\n"))),
			`parse rdma/a/holders: malformed: line 1: "1": "queues": unknown key`,
		},
		{
			of(decode[[]host.HealthReporter]("devlink/health", []byte("pci/a: state=0\n"))),
			`parse devlink/health: malformed: line 1: "pci/a": incomplete name`,
		},
		{
			of(decode[snapshot.Process]("processes/1", []byte("gpus: 0\nother: 1\n"))),
			`parse processes/1: malformed: line 2: "other": unknown key`,
		},
		{
			of(decode[snapshot.Process]("processes/1", []byte("conf_NCCL_A: 1\n"))),
			`parse processes/1: malformed: line 1: "conf_NCCL_A": the line that announces it is missing`,
		},
		{
			of(decode[snapshot.Process]("processes/1", []byte("hidden: yes\n"))),
			`parse processes/1: malformed: line 1: "hidden": "yes" is not a flag`,
		},
		{
			of(decode[host.IBPortSettings]("x", []byte("vls: 0 1\n"))),
			`parse x: malformed: line 1: "vls": 2 values, want 16`,
		},
		{
			of(decode[host.DCBConfig]("x", []byte("apps: 1\napp_dscp_8: 1\n"))),
			`parse x: malformed: line 2: "app_dscp_8": 8 exceeds 7`,
		},
		{
			of(decode[host.KernelLogReading]("x", []byte("11: 5 module_error\n"))),
			`parse x: malformed: line 1: "11": 2 values, want 7`,
		},
		{
			of(decodeAt[snapshot.Trace](tracePath, []byte("age: soon\n"), time.Time{})),
			`parse ebpf/trace: malformed: line 1: "age": "soon" is not a number of seconds`,
		},
	} {
		if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, host.ErrMalformed) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// TestEntriesOfMachines: what is read from the recorded machines is written again byte for byte, but for a few entries
// edited by hand.
func TestEntriesOfMachines(t *testing.T) {
	again := map[*regexp.Regexp]func(path string, b []byte) ([]byte, error){
		regexp.MustCompile(`^rdma/.*/port$`):                rewrite[host.RDMAPort],
		regexp.MustCompile(`^rdma/.*/stats$`):               rewrite[[]host.Stat],
		regexp.MustCompile(`^rdma/.*/holders$`):             rewrite[[]host.RDMAHolder],
		regexp.MustCompile(`^ethtool/.*/linkstate$`):        rewrite[host.LinkState],
		regexp.MustCompile(`^ethtool/.*/linkmodes$`):        rewrite[host.LinkModes],
		regexp.MustCompile(`^ethtool/.*/pause$`):            rewrite[host.Pause],
		regexp.MustCompile(`^ethtool/.*/fec$`):              rewrite[host.FEC],
		regexp.MustCompile(`^ethtool/.*/(stats|standard)$`): rewrite[[]host.Stat],
		regexp.MustCompile(`^devlink/health$`):              rewrite[[]host.HealthReporter],
		regexp.MustCompile(`^dcb/`):                         rewrite[host.DCBConfig],
		regexp.MustCompile(`^subnet/.*/link$`):              rewrite[host.IBLink],
		regexp.MustCompile(`^subnet/.*/agent/`):             rewrite[host.IBCounters],
		regexp.MustCompile(`^subnet/.*/manager/`):           rewrite[host.IBManager],
		regexp.MustCompile(`^subnet/.*/fec/`):               rewrite[host.IBFEC],
		regexp.MustCompile(`^subnet/.*/settings$`):          rewrite[host.IBPortSettings],
		regexp.MustCompile(`^nvml/system$`):                 rewrite[snapshot.NVML],
		regexp.MustCompile(`^nvml/gpu/`):                    rewrite[snapshot.GPU],
		regexp.MustCompile(`^processes/`):                   rewrite[snapshot.Process],
		regexp.MustCompile(`^pods$`):                        rewrite[[]snapshot.Pod],
		regexp.MustCompile(`^launchers$`):                   rewrite[launcherSearch],
		regexp.MustCompile(`^ebpf/trace$`):                  rewrite[snapshot.Trace],
	}
	seen, same := map[string]bool{}, 0
	eachFile(t, func(t *testing.T, file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parse(t, string(text)).each(func(e *Entry) {
			for pattern, rewrite := range again {
				if e.Kind != File || seen[e.Path+string(e.Data)] || !pattern.MatchString(e.Path) {
					continue
				}
				seen[e.Path+string(e.Data)] = true
				b, err := rewrite(e.Path, e.Data)
				if string(b) == string(e.Data) {
					same++
				}
				if twice, again := rewrite(e.Path, b); err != nil || again != nil || string(twice) != string(b) {
					t.Errorf("%s: %v %v\n%s\nis written as\n%s\nand as\n%s", e.Path, err, again, e.Data, b, twice)
				}
			}
		})
	})
	if same < 1000 || same*100 < len(seen)*99 {
		t.Errorf("%d of %d entries are the same", same, len(seen))
	}
}

func rewrite[T any](path string, b []byte) ([]byte, error) {
	v, err := decode[T](path, b)
	return encode(v), err
}

// TestTypeForms: a field without a line would be lost, a misspelt option ignored.
func TestTypeForms(t *testing.T) {
	known := strings.Fields("hex max len enum micros escaped omitempty counter open word any bare after set name none value columns note" +
		" group each lanes has")
	for of, form := range typeForms() {
		var named []string
		for line := range strings.Lines(strings.TrimSpace(form)) {
			named = append(named, strings.Fields(line)[0])
		}
		for i := range of.NumField() {
			if f := of.Field(i).Name; !slices.Contains(named, f) {
				t.Errorf("%s.%s has no form: what is not recorded is %q", of, f, notRecorded)
			}
		}
		if len(named) != of.NumField() {
			t.Errorf("%s: %d fields, %d in its form", of, of.NumField(), len(named))
		}
		for _, f := range recordedFields(of) {
			for _, option := range strings.Split(f.form, ",")[1:] {
				if name, _, _ := strings.Cut(option, "="); !slices.Contains(known, name) {
					t.Errorf("%s.%s: unknown option %q", of, f.Name, name)
				}
			}
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && inner != timeType && typeForms()[inner] == "" {
				t.Errorf("%s.%s: %s has no form", of, f.Name, inner)
			}
		}
	}
}
