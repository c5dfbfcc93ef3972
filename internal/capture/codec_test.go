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
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/snapshot"
)

// What the tests of single types call. The types are written by their tags.

func encodePort(p host.RDMAPort) []byte           { return encode(p) }
func encodeLinkModes(m host.LinkModes) []byte     { return encode(m) }
func encodeLinkState(s host.LinkState) []byte     { return encode(s) }
func encodePause(p host.Pause) []byte             { return encode(p) }
func encodeFEC(f host.FEC) []byte                 { return encode(f) }
func encodeStats(s []host.Stat) []byte            { return encode(s) }
func encodeHealth(h []host.HealthReporter) []byte { return encode(h) }
func encodeDCB(c dcb.Config) []byte               { return encode(c) }
func encodeLink(l host.IBLink) []byte             { return encode(l) }
func encodeManager(m host.IBManager) []byte       { return encode(m) }
func encodePortFEC(f host.IBFEC) []byte           { return encode(f) }
func encodeSettings(s host.IBPortSettings) []byte { return encode(s) }
func encodeHolders(h []host.RDMAHolder) []byte    { return encode(h) }
func encodeGPU(g snapshot.GPU) []byte             { return encode(g) }
func encodePods(p []snapshot.Pod) []byte          { return encode(p) }

func encodeProcess(p snapshot.Process) []byte { return encode(p) }

func decodePort(path string, b []byte) (host.RDMAPort, error) { return decode[host.RDMAPort](path, b) }

func decodeLinkModes(path string, b []byte) (host.LinkModes, error) {
	return decode[host.LinkModes](path, b)
}

func decodeLinkState(path string, b []byte) (host.LinkState, error) {
	return decode[host.LinkState](path, b)
}

func decodePause(path string, b []byte) (host.Pause, error) { return decode[host.Pause](path, b) }
func decodeFEC(path string, b []byte) (host.FEC, error)     { return decode[host.FEC](path, b) }

func decodeStats(path string, b []byte, _ []host.Stat) ([]host.Stat, error) {
	return decode[[]host.Stat](path, b)
}

func decodeHealth(path string, b []byte) ([]host.HealthReporter, error) {
	return decode[[]host.HealthReporter](path, b)
}

func decodeDCB(path string, b []byte) (dcb.Config, error) { return decode[dcb.Config](path, b) }

func decodeLink(path string, b []byte) (host.IBLink, error) { return decode[host.IBLink](path, b) }

func decodeManager(path string, b []byte) (host.IBManager, error) {
	return decode[host.IBManager](path, b)
}

func decodePortFEC(path string, b []byte) (host.IBFEC, error) { return decode[host.IBFEC](path, b) }

func decodeSettings(path string, b []byte) (host.IBPortSettings, error) {
	return decode[host.IBPortSettings](path, b)
}

func decodeHolders(path string, b []byte) ([]host.RDMAHolder, error) {
	return decode[[]host.RDMAHolder](path, b)
}

func decodeGPU(path string, b []byte) (snapshot.GPU, error) { return decode[snapshot.GPU](path, b) }
func decodePods(b []byte) ([]snapshot.Pod, error)           { return decode[[]snapshot.Pod](podsPath, b) }

func decodeProcess(path string, b []byte) (snapshot.Process, error) {
	return decode[snapshot.Process](path, b)
}

func encodeKernelLog(r host.KernelLogReading) []byte { return encode(r) }

func decodeKernelLog(path string, b []byte) (host.KernelLogReading, error) {
	return decode[host.KernelLogReading](path, b)
}

func decodeTrace(b []byte, start time.Time) (snapshot.Trace, error) {
	return decodeAt[snapshot.Trace](tracePath, b, start)
}

// TestErrorsOfEntries: an error names the entry, the line, the key and the reason.
func TestErrorsOfEntries(t *testing.T) {
	of := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			of(decodePort("rdma/a/1/port", []byte("state: 4\nlid: x\n"))),
			`parse rdma/a/1/port: malformed: line 2: "lid": "x" is not a number`,
		},
		{
			of(decodePort("rdma/a/1/port", []byte("state\n"))),
			`parse rdma/a/1/port: malformed: line 1: "state": not KEY: VALUE`,
		},
		{
			of(decodeStats("rdma/a/1/stats", []byte("a: b: -1\n"), nil)),
			`parse rdma/a/1/stats: malformed: line 1: "a: b": "-1" is not a number`,
		},
		{
			of(decodeHolders("rdma/a/holders", []byte("1: contexts=1 queues=1\n"))),
			`parse rdma/a/holders: malformed: line 1: "1": "queues": unknown key`,
		},
		{
			of(decodeHealth("devlink/health", []byte("pci/a: state=0\n"))),
			`parse devlink/health: malformed: line 1: "pci/a": incomplete name`,
		},
		{
			of(decodeProcess("processes/1", []byte("gpus: 0\nother: 1\n"))),
			`parse processes/1: malformed: line 2: "other": unknown key`,
		},
		{
			of(decodeProcess("processes/1", []byte("conf_NCCL_A: 1\n"))),
			`parse processes/1: malformed: line 1: "conf_NCCL_A": the line that announces it is missing`,
		},
		{
			of(decodeProcess("processes/1", []byte("hidden: yes\n"))),
			`parse processes/1: malformed: line 1: "hidden": "yes" is not a flag`,
		},
		{
			of(decodeSettings("x", []byte("vls: 0 1\n"))),
			`parse x: malformed: line 1: "vls": 2 values, want 16`,
		},
		{
			of(decodeDCB("x", []byte("apps: 1\napp_dscp_8: 1\n"))),
			`parse x: malformed: line 2: "app_dscp_8": 8 exceeds 7`,
		},
		{
			of(decodeKernelLog("x", []byte("11: 5 module_error\n"))),
			`parse x: malformed: line 1: "11": 2 values, want 7`,
		},
		{
			of(decodeTrace([]byte("age: soon\n"), time.Time{})),
			`parse ebpf/trace: malformed: line 1: "age": "soon" is not a number of seconds`,
		},
	} {
		if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, access.ErrMalformed) {
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
		regexp.MustCompile(`^dcb/`):                         rewrite[dcb.Config],
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

// TestTags: a misspelt option would be ignored.
func TestTags(t *testing.T) {
	known := strings.Fields("hex max len enum micros escaped omitempty counter open word any bare after set name none value columns note" +
		" group each lanes has")
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == timeType || seen[of] {
			return
		}
		seen[of] = true
		for i := range of.NumField() {
			tag, ok := of.Field(i).Tag.Lookup("capture")
			if !ok {
				continue
			}
			for _, option := range strings.Split(tag, ",")[1:] {
				if name, _, _ := strings.Cut(option, "="); !slices.Contains(known, name) {
					t.Errorf("%s.%s: unknown option %q", of, of.Field(i).Name, name)
				}
			}
			walk(of.Field(i).Type)
		}
	}
	for _, v := range []any{
		host.RDMAPort{},
		host.RDMASystem{},
		host.RDMAHolder{},
		host.LinkState{},
		host.LinkModes{},
		host.Pause{},
		host.FEC{},
		host.HealthReporter{},
		dcb.Config{},
		host.IBLink{},
		host.IBCounters{},
		host.IBManager{},
		host.IBFEC{},
		host.IBPortSettings{},
		host.KernelLogReading{},
		snapshot.NVML{},
		snapshot.GPU{},
		snapshot.Process{},
		snapshot.Pod{},
		launcherSearch{},
		snapshot.Trace{},
	} {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < 30 {
		t.Errorf("%d types", len(seen))
	}
}
