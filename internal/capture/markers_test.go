package capture

import (
	"path"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/fixtures"
)

// markers are an address of this machine, its name, and what a user has written, in each notation.
var markers = map[string]string{
	"MAC address":                 "b8:3f:d2:5a:b7:c9",
	"MAC address, upper case":     "B8:3F:D2:5A:B7:C9",
	"MAC address with dashes":     "b8-3f-d2-5a-b7-c9",
	"MAC address with dots":       "b83f.d25a.b7c9",
	"MAC address, bare":           "b83fd25ab7c9",
	"MAC address, decimal":        "202576640915401",
	"interface name":              "enxb83fd25ab7c9",
	"device name":                 "rocexb83fd203005ab7c9",
	"GUID":                        "b83f:d203:005a:b7c9",
	"GUID, bare":                  "b83fd203005ab7c9",
	"GID with an EUI-64":          "fe80:0000:0000:0000:ba3f:d2ff:fe5a:b7c9",
	"GID with its own interface":  "fd12:3456:789a:0001:0000:0000:005a:b7c9",
	"IPv6 address, bare":          "fd123456789a0001ba3fd2fffe5ab7c9",
	"IPv6 address, short":         "fd12:3456:789a::5a:b7c9",
	"IPv6 address, as the kernel": "fd12:3456:789a:0001:ba3f:d2ff:fe5a:b7c9",
	"UUID":                        "5ab7c9aa-e593-4fae-9077-8e4835b180e1",
	"UUID of a GPU":               "GPU-5ab7c9aa-e593-4fae-9077-8e4835b180e1",
	"host name":                   "gpu-zq17",
	"host name, upper case":       "GPU-ZQ17",
	"domain":                      "gpu-zq17.zqcluster.example.com",
	"user and host":               "zqalice@gpu-zq17",
	"file":                        "/home/zqalice/run.sh",
	"host and port":               "gpu-zq17:28028",
	"secret":                      "PASSWORD=zqsecret!",
	"token":                       "NCCL_ZQ_TOKEN=c2VjcmV0zq",
}

// traces are the parts of markers that identify: none of them may be left.
var traces = []string{
	"5a:b7:c", "5ab7c", "5a-b7-c", "d25a.b7c", "202576640915401", "5a:b7c9", "5ab7c9aa", "zq17", "zqcluster",
	"zqalice", "zqsecret",
	"c2VjcmV0zq", "3456:789a", "3456789a",
}

// numeric are the shapes that a counter of 64 bits cannot be told from.
var numeric = []string{"MAC address, decimal"}

// TestNoMarkerIsLeft: a marker in each file and answer that a machine has, in each shape, as a line of its own and in
// place of the content, and none of it after Anonymise. The files of recorded machines are what the collectors read.
func TestNoMarkerIsLeft(t *testing.T) {
	for shape, marker := range markers {
		t.Run(shape, func(t *testing.T) {
			entries := readFiles(t)
			var whole, marked Archive
			for _, placed := range []func(content string) string{
				func(content string) string { return content + marker + "\n" },
				func(string) string { return marker + "\n" },
				func(content string) string { return strings.Replace(content, "\n", " "+marker+"\n", 1) },
			} {
				whole = Archive{Meta: Meta{Version: Version, Hostname: "gpu-zq17.zqcluster.example.com"}, Rounds: []Round{{}}}
				for _, e := range entries {
					e.Data = []byte(placed(string(e.Data)))
					whole.Rounds[0].Entries = append(whole.Rounds[0].Entries, e)
				}
				marked = Archive{Meta: whole.Meta, Rounds: []Round{{Entries: slices.Clone(whole.Rounds[0].Entries)}}}
				Anonymise(&marked)
				for _, e := range marked.Rounds[0].Entries {
					isCounter := slices.Contains([]string{"counters", "hw_counters", "statistics"}, path.Base(path.Dir(e.Path))) ||
						isKFD(e.Path)
					if isCounter && slices.Contains(numeric, shape) {
						continue
					}
					for _, trace := range traces {
						if strings.Contains(strings.ToLower(string(e.Data)+e.Target+e.Path), strings.ToLower(trace)) {
							t.Errorf("%s: %s is left in %q", e.Path, trace, cut(string(e.Data)))
							break
						}
					}
				}
				for _, e := range whole.Rounds[0].Entries {
					if !strings.Contains(string(e.Data), marker) && len(e.Data) > 0 && strings.Contains(string(e.Data), "\n") {
						t.Errorf("%s has no marker before", e.Path)
					}
				}
			}
		})
	}
}

func cut(s string) string { return s[:min(len(s), 200)] }

// readFiles is one file of each kind that recorded machines have, and those that only some hosts have.
func readFiles(t *testing.T) []Entry {
	t.Helper()
	kinds := map[string]Entry{}
	for _, name := range []string{"dgx-h100-ib", "mana-azure", "idle-gpu-gen1-ok"} {
		a, err := Load("../../fixtures/sysfs/"+name+".txtar", fixtures.Builtin)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range a.Rounds[0].Entries {
			kind := path.Base(e.Path)
			base, inSysfs := path.Base(path.Dir(e.Path)), strings.HasPrefix(e.Path, "sys/")
			if !inSysfs || strings.Trim(kind, "0123456789") == "" {
				kind = base + "/" + strings.Trim(kind, "0123456789")
			}
			if e.Kind == File && !isEEPROM(e.Path) { // a page is bytes in hex, with a test of its own
				kinds[kind] = e
			}
		}
	}
	for _, name := range []string{
		"etc/nccl.conf", "etc/modules", "etc/modprobe.d/site.conf", "etc/infiniband/openib.conf",
		"proc/1/net/route", "proc/1/net/arp", "proc/1/net/ipv6_route", "proc/config.gz",
		"proc/driver/nvidia/gpus/0000:18:00.0/information", "proc/sys/kernel/hostname",
		"run/nvidia-topologyd/virtualTopology.xml", "sys/kernel/debug/dma_buf/bufinfo",
		"lib/modules/6.8.0/modules.builtin", "sys/module/mlx5_core/version", "proc/kallsyms",
		"proc/driver/nvidia-fs/stats", "pods", "kernel/log", "ebpf/trace",
		"sys/devices/d/net/eth0/phys_switch_id", "exporter/state.json", "etc/cufile.conf",
	} {
		if _, there := kinds[name]; !there {
			kinds[name] = Entry{Path: name, Data: []byte("\n")}
		}
	}
	byPath := map[string]Entry{}
	for _, e := range kinds {
		byPath[e.Path] = e
	}
	var out []Entry
	for _, e := range byPath {
		out = append(out, e)
	}
	slices.SortFunc(out, func(x, y Entry) int { return strings.Compare(x.Path, y.Path) })
	if len(out) < 100 {
		t.Fatalf("%d files", len(out))
	}
	return out
}
