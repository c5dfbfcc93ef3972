//go:build !race

package capture

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/fixtures"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// address matches MAC addresses, GUIDs and GIDs, independently of the code under test.
var address = regexp.MustCompile(`(?m)(?:^|[ =/"])((?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}|(?:[0-9a-f]{4}:){3,7}[0-9a-f]{4})(?:$|["/])`)

// vpdSerial is the serial number of an NVIDIA card.
var vpdSerial = regexp.MustCompile(`MT\d{4}X\d+`)

// UUIDs and their pseudonyms, independently of the code under test.
var (
	uuidText      = regexp.MustCompile(`(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	uuidPseudonym = regexp.MustCompile(`^[0-9a-f]{8}-0000-4000-[89ab]000-0{12}$`)
)

func TestNothingOfAFixturesAddressesIsLeftOfMachines(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *Archive) {
		text := format(t, a)
		if a.Meta.Anonymised { // a capture of a real machine: its pseudonyms are unchanged
			Anonymise(a)
			differ(t, format(t, a), text)
			return
		}
		replacePIDs(a) // processes have a test of their own
		original := contents(a)
		host := a.Meta.Hostname
		Anonymise(a)
		got := format(t, a)
		if host == HostPseudonym { // of a real machine, anonymised when it was captured
			if got != text {
				t.Error("anonymising twice changes the capture")
			}
			return
		}
		if host != "" && strings.Contains(got, host) {
			t.Errorf("the host name %q remains", host)
		}
		forms := map[string]string{} // forms that must not remain → address
		for _, content := range original {
			for _, m := range address.FindAllStringSubmatch(content, -1) {
				d := strings.ReplaceAll(m[1], ":", "")
				if strings.HasPrefix(d, "00000000000000000000ffff") {
					forms[":ffff:"+m[1][len(m[1])-9:len(m[1])-1]] = m[1]
				} else if tail := d[len(d)-6 : len(d)-1]; strings.Trim(tail, "0") != "" {
					forms[tail[:2]+":"+tail[2:4]+":"+tail[4:]] = m[1]
					forms[tail[:2]+":"+tail[2:]] = m[1]
				}
			}
		}
		for form := range remaining(got, forms) {
			t.Errorf("of %s, %s is left", forms[form], form)
		}
		uuids := map[string]string{} // → file
		for name, content := range original {
			for _, u := range uuidText.FindAllString(name+" "+content, -1) {
				if !uuidPseudonym.MatchString(u) {
					uuids[u] = name
				}
			}
		}
		for u := range remaining(got, uuids) {
			t.Errorf("%s: %s is left", uuids[u], u)
		}
		anonymous := withoutUUIDs(contents(a))
		original = withoutUUIDs(original)
		left := 0
		for name, content := range original {
			now, there := anonymous[name]
			if _, file, _ := strings.Cut(name, " "); slices.Contains(a.Meta.LeftOut, file) {
				left++
				continue
			}
			if !there {
				t.Errorf("%s is called otherwise", name)
			}
			if path.Base(name) == "vpd" {
				if serial := vpdSerial.FindString(content); serial != "" && strings.Contains(now, serial) {
					t.Errorf("%s: %s is left", name, serial)
				}
				continue
			}
			_, file, _ := strings.Cut(name, " ")
			if networkFile().MatchString(file) {
				ipv4(file, now, func(digits string) string {
					if strings.Contains(content, digits) || !strings.HasPrefix(digits, "0a0a") {
						t.Errorf("%s: %s0/28 is left", name, digits)
					}
					return digits
				})
				continue
			}
			if file == "proc/sys/kernel/random/boot_id" {
				if !strings.HasSuffix(now, "-0000-4000-9000-000000000000\n") {
					t.Errorf("%s: %s is left", name, now)
				}
				continue
			}
			if slices.Contains(a.Meta.LeftOut, file+InPart) {
				continue
			}
			if isEEPROM(file) { // the serial number of a transceiver, if it has one
				continue
			}
			if isLLDP(file) {
				for i, n := range neighbours([]byte(now)) {
					if was := neighbours([]byte(content))[i]; !strings.HasPrefix(n.SystemName, "switch-") || n.PortID != was.PortID ||
						n.Port() != was.Port() {
						t.Errorf("%s: %+v became %+v", name, was, n)
					}
				}
				continue
			}
			if file == podsPath {
				for line := range strings.Lines(now) {
					if !strings.HasPrefix(line, "namespace-") || !strings.Contains(line, "/pod-") {
						t.Errorf("%s: %q is left", name, line)
					}
				}
				continue
			}
			if isGPU(file) && content != "" { // else it does not answer
				checkAnonymousGPU(t, file, content, now)
				continue
			}
			if isKFD(file) {
				for _, m := range kfdPattern().FindAllStringSubmatch(content, -1) {
					if strings.Contains(now, m[0]+"\n") {
						t.Errorf("%s: %s is left", name, m[0])
					}
				}
				content, now = kfdPattern().ReplaceAllString(content, "$1"), kfdPattern().ReplaceAllString(now, "$1")
			}
			content = siteLine.ReplaceAllString(content, "") // of this site
			now = siteLine.ReplaceAllString(now, "")
			if !address.MatchString(content) && !isBareID(name) && host != "" &&
				!strings.Contains(content, host) && now != content {
				t.Errorf("%s: %q became %q", name, content, now)
			}
		}
		if len(anonymous)+left != len(original) {
			t.Errorf("%d paths, %d before, %d are left out", len(anonymous), len(original), left)
		}
		if strings.Contains(text, "/gids @files") && len(forms) == 0 {
			t.Error("no address was found")
		}
	})
}

// checkAnonymousGPU: UUID and serial number have pseudonyms where they exist, and nothing else changes.
func checkAnonymousGPU(t *testing.T, name, before, after string) {
	t.Helper()
	b, err := decodeGPU(name, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	a, err := decodeGPU(name, []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(a.UUID, "GPU-000000") || !strings.HasPrefix(a.Serial, "SERIAL") {
		t.Errorf("%s: %s, %s is left", name, a.UUID, a.Serial)
	}
	a.UUID, a.Serial = b.UUID, b.Serial
	if b.Fabric != nil && b.Fabric.Cluster != "" {
		if !strings.HasPrefix(a.Fabric.Cluster, "000000") {
			t.Errorf("%s: %s is left", name, a.Fabric.Cluster)
		}
		a.Fabric.Cluster = b.Fabric.Cluster
	}
	if !bytes.Equal(encodeGPU(a), encodeGPU(b)) {
		t.Errorf("%s: %q became %q", name, before, after)
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

func TestARecordingPlayedAndRecordedAgainIsIdenticalOfMachines(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *Archive) {
		if len(a.Rounds)*len(a.Rounds[0].Entries) > 2000 {
			return // long; internal/cli records every fixture with the real collectors
		}
		once := record(t, a)
		b := parse(t, once)
		differ(t, record(t, b), once)
		if len(b.Rounds) != len(a.Rounds) || len(b.Rounds[0].Entries) < len(a.Rounds[0].Entries)/2 {
			t.Errorf("%d of %d entries were recorded", len(b.Rounds[0].Entries), len(a.Rounds[0].Entries))
		}
	})
}

func TestFixturesAreWrittenAgainByteForByteOfMachines(t *testing.T) {
	eachFile(t, func(t *testing.T, file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		differ(t, format(t, parse(t, string(text))), string(text))
	})
}

// withoutUUIDs has one text for each UUID in paths and targets in sysfs, and in jobs.
func withoutUUIDs(contents map[string]string) map[string]string {
	out := map[string]string{}
	for name, content := range contents {
		if strings.Contains(name, " sys/") || strings.Contains(name, " processes/") {
			content = uuidText.ReplaceAllString(content, "UUID")
		}
		out[uuidText.ReplaceAllString(name, "UUID")] = content
	}
	return out
}

var siteLine = regexp.MustCompile(`(?m)^(env_NCCL_TOPO_FILE|job_name|user|container): .*\n`)

// remaining are the forms that a text has: one pass for all of a length.
func remaining(text string, forms map[string]string) map[string]bool {
	lengths, out := map[int]bool{}, map[string]bool{}
	for form := range forms {
		lengths[len(form)] = true
	}
	for n := range lengths {
		for i := range len(text) - n + 1 {
			if _, ok := forms[text[i:i+n]]; ok {
				out[text[i:i+n]] = true
			}
		}
	}
	return out
}

func rewrite[T any](path string, b []byte) ([]byte, error) {
	v, err := decode[T](path, b)
	return encode(v), err
}

// eachFixture runs a test on every recorded machine; variants are whole.
func eachFixture(t *testing.T, test func(t *testing.T, a *Archive)) {
	eachFile(t, func(t *testing.T, file string) {
		a, err := Load(file, fixtures.Builtin)
		if err != nil {
			t.Fatal(err)
		}
		test(t, a)
	})
}

func eachFile(t *testing.T, test func(t *testing.T, file string)) {
	files, err := filepath.Glob("../../fixtures/sysfs/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { test(t, file) })
	}
}
