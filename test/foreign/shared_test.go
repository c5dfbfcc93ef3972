package foreign_test

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/anonymise"
	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/host"
	"rdma_exporter/test/machines"
)

// identities are an address of a machine, its name, and what its users have written, in each notation.
var identities = map[string]string{
	"MAC address":                 "b8:3f:d2:5a:b7:c9",
	"MAC address, upper case":     "B8:3F:D2:5A:B7:C9",
	"MAC address with dashes":     "b8-3f-d2-5a-b7-c9",
	"MAC address with dots":       "b83f.d25a.b7c9",
	"MAC address, bare":           "b83fd25ab7c9",
	"MAC address, decimal":        decimal,
	"interface name":              "enxb83fd25ab7c9",
	"device name":                 "rocexb83fd203005ab7c9",
	"GUID":                        "b83f:d203:005a:b7c9",
	"GUID, bare":                  "b83fd203005ab7c9",
	"GID with an EUI-64":          "fe80:0000:0000:0000:ba3f:d2ff:fe5a:b7c9",
	"GID with its own interface":  "fd12:3456:789a:0001:0000:0000:005a:b7c9",
	"GID with a random interface": "fe80:0000:0000:0000:75a1:d4c2:9e5a:b7c9",
	"IPv6 address, bare":          "fd123456789a0001ba3fd2fffe5ab7c9",
	"IPv6 address, short":         "fd12:3456:789a::5a:b7c9",
	"IPv6 address, as the kernel": "fd12:3456:789a:0001:ba3f:d2ff:fe5a:b7c9",
	"UUID":                        "5ab7c9aa-e593-4fae-9077-8e4835b180e1",
	"UUID of a GPU":               "GPU-5ab7c9aa-e593-4fae-9077-8e4835b180e1",
	"host name":                   "gpu-zq17",
	"host name, upper case":       "GPU-ZQ17",
	"domain":                      zqHost,
	"user and host":               "zqalice@gpu-zq17",
	"file":                        "/home/zqalice/run.sh",
	"host and port":               "gpu-zq17:28028",
	"secret":                      "PASSWORD=zqsecret!",
	"token":                       "NCCL_ZQ_TOKEN=c2VjcmV0zq",
}

const (
	zqHost  = "gpu-zq17.zqcluster.example.com"
	decimal = "202576640915401"
)

// traces are the parts of identities that identify, in lower case: none of them may be left.
var traces = []string{
	"5a:b7:c", "5ab7c", "5a-b7-c", "d25a.b7c", decimal, "5a:b7c9", "5ab7c9aa", "75a1:d4c2", "d4c2:9e",
	"zq17", "zqcluster", "zqalice", "zqsecret", "c2vjcmv0zq", "3456:789a", "3456789a",
}

// ofNumbers are files of numbers of 64 bits: a decimal address is one.
var ofNumbers = regexp.MustCompile(`/(?:counters|hw_counters|statistics)/[^/]+$|kfd/topology/nodes/`)

// spied is the files of a host, each of which holds a text in addition to its content or in place of it. A file that a
// reader asks for in vain holds the text alone.
type spied struct {
	host.Files
	text string
	seed int // of the place of the text in each file
}

func (s *spied) Read(name string, buf []byte) ([]byte, error) {
	b, err := s.Files.Read(name, buf)
	return s.spoil(name, b, err)
}

func (s *spied) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	return s.Read(path.Join(dir, name), buf)
}

func (s *spied) ReadEach(
	dir string, names []string, buf []byte, each func(name string, content []byte, err error),
) []byte {
	for _, name := range names {
		b, err := s.ReadIn(dir, name, nil)
		each(name, b, err)
	}
	return buf
}

func (s *spied) Head(name string, size int) ([]byte, bool, error) {
	b, whole, err := s.Files.Head(name, size)
	b, err = s.spoil(name, b, err)
	return b, whole || err == nil && size > len(b), err
}

func (s *spied) Lines(name string, words []string) ([]byte, error) {
	b, err := s.Files.Lines(name, words)
	return s.spoil(name, b, err)
}

func (s *spied) spoil(name string, b []byte, err error) ([]byte, error) {
	absent := errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent || strings.HasSuffix(name, "/config") || !utf8.Valid(b) {
		return b, err
	}
	if _, isDir := s.List(name); isDir == nil {
		return b, err
	}
	if _, hasDir := s.List(path.Dir(name)); absent && strings.HasPrefix(name, "sys/") && hasDir != nil {
		return b, err
	}
	sum := fnv.New32a()
	sum.Write([]byte(name))
	at := int(sum.Sum32()>>8) + s.seed
	if decides(name) && !absent && at/3%8 > 0 {
		return b, err
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	switch {
	case absent, at%3 == 0:
		return []byte(s.text + "\n"), nil
	case at%3 == 1:
		return []byte(first + " " + s.text + "\n" + rest), nil
	}
	return []byte(strings.TrimSuffix(string(b), "\n") + "\n" + s.text + "\n"), nil
}

// others are devices that a machine has more of.
var others = regexp.MustCompile(`\bmlx5_(?:[1246789]|1[0-9])\b`)

// decides reports whether others are read by the content of a file. One in eight holds the text.
func decides(name string) bool {
	return strings.HasPrefix(name, "sys/") && parsedFiles.MatchString(name)
}

// TestShared: of a host whose every file and answer holds an address, a name or a secret in some notation, a capture
// has all of them, and an anonymised one has none.
func TestShared(t *testing.T) {
	answers, held := newMarks(), map[string]bool{}
	for j, c := range hostileMachines(t)[:2] {
		a := machines.Load(t, c.base)
		for name, text := range c.parts {
			a.Put(name, []byte(text))
		}
		a.Put("pods", []byte(from(t, "sriov-pods-port-down", "pods")))
		a.Put("ethtool/enp24s0np0/stats", []byte("rx_packets: 1\n"))
		a.Rounds = a.Rounds[:1]
		a.Meta.Hostname, a.Meta.Kernel = zqHost, "6.8.0 "+zqHost
		a.Rounds[0].Entries = slices.DeleteFunc(a.Rounds[0].Entries, func(e capture.Entry) bool {
			return others.MatchString(e.Path)
		})
		rename := strings.NewReplacer("mlx5_5", "rocexb83fd203005ab7c9", "enp24s0np0", "enxb83fd25ab7c9")
		for i := range a.Rounds[0].Entries {
			e := &a.Rounds[0].Entries[i]
			e.Path, e.Target = rename.Replace(e.Path), rename.Replace(e.Target)
		}
		file := machines.Written(t, a)
		for i, shape := range slices.Sorted(maps.Keys(identities)) {
			if j > 0 && i%3 > 0 {
				continue // of the second machine only the answers of subnet agents matter
			}
			t.Run(c.base+"/"+shape, func(t *testing.T) {
				shared(t, answers, held, file, identities[shape], i+j)
			})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(held)) {
		if !held[kind] && !withoutText.MatchString(kind) {
			t.Errorf("%s: never held", kind)
		}
	}
	for _, name := range answerTexts() {
		if _, known := answers.number[name]; !known && notCaptured[name] == "" {
			t.Errorf("%s: no answer had it", name)
		}
	}
}

// notCaptured are texts of answers that these machines do not ask for.
var notCaptured = map[string]string{
	"GPUs.GPUsReleased.By":         "of the exporter itself",
	"Ethtool.StandardStats[].Name": "of a type with Ethtool.NetdevStats, which others ask for",
	"RDMA.Connections[].Peer":      "TestProcessesAreNumbered of package anonymise",
}

func shared(t *testing.T, m *marks, held map[string]bool, file, identity string, seed int) {
	t.Helper()
	m.inert = identity
	run := func(args ...string) *capture.Archive {
		m.turn = map[string]int{}
		var out, errs strings.Builder
		code := cli.RunOn(t.Context(), cli.Outside{Host: func(h *host.Host) {
			m.around(h)
			h.Files = &spied{h.Files, identity, seed}
		}}, append([]string{"--replay=" + file, "capture", "-o", "-"}, args...), &out, &errs)
		a, err := capture.Parse([]byte(out.String()))
		if code != 0 || err != nil {
			t.Fatal(code, errs.String(), err)
		}
		return a
	}
	a := run()
	files := 0
	for _, e := range a.Rounds[0].Entries {
		if e.Kind != capture.File {
			continue
		}
		kind, holds := renamed.Replace(fileName(e.Path)), strings.Contains(string(e.Data), identity)
		held[kind] = held[kind] || holds
		if ofFiles.MatchString(e.Path) && !decides(e.Path) && !withoutText.MatchString(kind) {
			if files++; !holds {
				t.Errorf("%s: not held: %.200q", e.Path, e.Data)
			}
		}
	}
	if files < 50 {
		t.Errorf("%d files", files)
	}
	if seed%8 == 0 { // the command does no more than the function
		a = run("--anonymise")
	} else {
		anonymise.Archive(a)
	}
	for _, e := range a.Rounds[0].Entries {
		if identity != decimal || !ofNumbers.MatchString(e.Path) {
			withoutTraces(t, e.Path, e.Path+"\n"+e.Target+"\n"+string(e.Data))
		}
	}
	withoutTraces(t, "capture.json", strings.Join(append(a.Meta.LeftOut, a.Meta.Hostname, a.Meta.Kernel), "\n"))
}

// renamed are the kinds of the devices with an address in their name.
var renamed = strings.NewReplacer("rocexN", "mlxN_N", "enxN", "enpNsNnpN")

// withoutText are kinds of entries without a text: numbers, pages of modules, configuration space and product data.
var withoutText = regexp.MustCompile(`^modes/|^rdma/system$|/(?:config|vpd|holders|linkstate|linkmodes|ieee)$|/eeprom/`)

func withoutTraces(t *testing.T, where, text string) {
	t.Helper()
	text = strings.ToLower(text)
	for _, trace := range traces {
		if i := strings.Index(text, trace); i >= 0 {
			t.Errorf("%s: %s is left in %s", where, trace, excerpt(text, i))
			return
		}
	}
}
