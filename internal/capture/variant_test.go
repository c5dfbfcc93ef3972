package capture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/fixtures/archive"
	"rdma_exporter/internal/capture"
	"rdma_exporter/test/archives"
)

// variantBase has counters that increase by 10 and 3 in 15 s, an answer of lines, and a device.
const variantBase = `-- capture.json --
{
  "version": 2,
  "hostname": "gpu-1",
  "kernel": "6.12.0",
  "time": "2026-01-02T03:04:05Z",
  "capabilities": ["CAP_NET_ADMIN"],
  "rounds": ["0s","15s"]
}
-- ethtool/eth0/stats --
rx_bytes: 100
rx_crc_errors_phy: 0
tx_bytes: 50
-- proc/uptime --
100.00 5000.00
-- sys/d/counters @files --
port_rcv_data: 1000
symbol_error: 0
-- sys/d/rate --
400 Gb/sec (4X NDR)
-- +15s/ethtool/eth0/stats --
rx_bytes: 103
rx_crc_errors_phy: 0
tx_bytes: 50
-- +15s/proc/uptime --
115.00 5750.00
-- +15s/sys/d/counters/port_rcv_data --
1010
`

const variantHead = `-- capture.json --
{
  "version": 2,
  "base": "base",
  "rounds": ["0s","15s","45s"]
}
`

func TestVariantShowsItsBaseInItsOwnRounds(t *testing.T) {
	whole, err := archives.Parse(t, variantHead).On(archives.Parse(t, variantBase))
	if err != nil {
		t.Fatal(err)
	}
	archives.Differ(t, archives.Format(t, whole), archives.Format(t, archives.Parse(t, strings.Replace(variantBase, `"15s"]`, `"15s","45s"]`, 1)+`-- +45s/ethtool/eth0/stats --
rx_bytes: 109
rx_crc_errors_phy: 0
tx_bytes: 50
-- +45s/proc/uptime --
145.00 7250.00
-- +45s/sys/d/counters/port_rcv_data --
1030
`)))
}

func TestVariantSaysWhatDiffers(t *testing.T) {
	for name, c := range map[string]struct{ variant, want string }{
		"a file": {"-- sys/d/rate --\n200 Gb/sec (2X NDR)\n", `
0s ethtool/eth0/stats rx_bytes: 100|rx_crc_errors_phy: 0|tx_bytes: 50|
0s proc/uptime 100.00 5000.00|
0s sys/d/counters/port_rcv_data 1000|
0s sys/d/counters/symbol_error 0|
0s sys/d/rate 200 Gb/sec (2X NDR)|
15s ethtool/eth0/stats rx_bytes: 103|rx_crc_errors_phy: 0|tx_bytes: 50|
15s proc/uptime 115.00 5750.00|
15s sys/d/counters/port_rcv_data 1010|
45s ethtool/eth0/stats rx_bytes: 109|rx_crc_errors_phy: 0|tx_bytes: 50|
45s proc/uptime 145.00 7250.00|
45s sys/d/counters/port_rcv_data 1030|
`},
		"a counter that stands still, and lines": {"-- proc !ENOENT --\n-- sys/d/counters/port_rcv_data --\n7\n-- +15s/ethtool/eth0/stats @lines --\nrx_crc_errors_phy: 9\ntx_bytes !ENOENT\nnew: 1\n", `
0s ethtool/eth0/stats rx_bytes: 100|rx_crc_errors_phy: 0|tx_bytes: 50|
0s sys/d/counters/port_rcv_data 7|
0s sys/d/counters/symbol_error 0|
0s sys/d/rate 400 Gb/sec (4X NDR)|
15s ethtool/eth0/stats rx_bytes: 103|rx_crc_errors_phy: 9|new: 1|
45s ethtool/eth0/stats rx_bytes: 109|rx_crc_errors_phy: 9|new: 1|
`},
		"a device that goes, and comes back with less": {"-- proc !ENOENT --\n-- ethtool !ENOENT --\n-- +15s/sys/d !ENOENT --\n-- +45s/sys/d/rate --\n1\n", `
0s sys/d/counters/port_rcv_data 1000|
0s sys/d/counters/symbol_error 0|
0s sys/d/rate 400 Gb/sec (4X NDR)|
15s sys !ENOENT
45s sys/d/rate 1|
`},
	} {
		t.Run(name, func(t *testing.T) {
			base := archives.Parse(t, variantBase)
			whole, err := archives.Parse(t, variantHead+c.variant).On(base)
			if err != nil {
				t.Fatal(err)
			}
			got := "\n"
			for _, r := range whole.Rounds {
				for _, e := range r.Entries {
					text := strings.ReplaceAll(string(e.Data), "\n", "|")
					if e.IsGone() {
						text = "!ENOENT"
					}
					got += r.At.String() + " " + e.Path + " " + text + "\n"
				}
			}
			archives.Differ(t, got, c.want)
			again, err := archive.Variant("base", base, whole)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := again.On(base); err != nil || !sameArchive(b, whole) {
				t.Errorf("made again: %v\n%s", err, archives.Format(t, again))
			}
			if m := whole.Meta; m.Hostname != "gpu-1" || m.Base != "" || len(m.Capabilities) != 1 {
				t.Errorf("%+v", m)
			}
		})
	}
}

func TestBasesAreFound(t *testing.T) {
	dir := t.TempDir()
	put := func(name, base, body string) string {
		text := strings.Replace(variantHead, `"base"`+": \"base\"", `"base": "`+base+`"`, 1) + body
		if base == "" {
			text = variantBase
		}
		file := filepath.Join(dir, name+".txtar")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put("base", "", "")
	builtin := func(name string) []byte {
		if name == "inside" {
			return []byte(variantBase)
		}
		return nil
	}
	put("ring-a", "ring-b", "")
	put("broken", "base", "-- a @zip --\n")
	for _, c := range []struct{ file, want string }{
		{put("first", "base", "-- sys/d/rate --\n1\n"), ""},
		{put("second", "first", "-- sys/d/rate --\n2\n"), ""},
		{put("third", "inside", ""), ""},
		{put("orphan", "nowhere", ""), `base "nowhere": nowhere.txtar not found in the directory of the variant: copy it there, or use the whole capture`},
		{put("ring-b", "ring-a", ""), "more than 8 nested variants, or a cycle: the last base has to be a whole capture"},
		{put("on-broken", "broken", ""), `base "broken": entry "a @zip": unknown mode "@zip"`},
		{put("below", "base", "-- sys/d/rate/x --\n1\n"), `entry "sys/d/rate/x": "sys/d/rate" is not a directory`},
		{put("lines", "base", "-- sys/d/new @lines --\na: 1\n"), `entry "sys/d/new": @lines requires a file in the base`},
		{filepath.Join(dir, "absent.txtar"), "no such file or directory"},
		{dir, "not a regular file of at most 512 MiB"},
	} {
		a, err := capture.Load(c.file, builtin)
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", filepath.Base(c.file), err, c.want)
		case err == nil && (a.IsVariant() || len(a.Rounds) != 3):
			t.Errorf("%s: %+v", filepath.Base(c.file), a.Meta)
		}
	}
	a, err := capture.Load(filepath.Join(dir, "second.txtar"), builtin)
	if err != nil {
		t.Fatal(err)
	}
	newest := func(e capture.Entry) bool { return e.Path == "sys/d/rate" && string(e.Data) == "2\n" }
	if !slices.ContainsFunc(a.Rounds[0].Entries, newest) {
		t.Error("the newest variant does not count")
	}
}

func FuzzVariant(f *testing.F) {
	for _, s := range []string{
		"", "-- sys/d !ENOENT --\n-- sys/d/rate --\n1\n", "-- +15s/ethtool/eth0/stats @lines --\nrx_bytes: 5\n",
		"-- sys @lines --\n: \n", "-- ethtool/eth0/stats @lines --\na\n: b\nrx_bytes !ENOENT\n",
		"-- sys/d/counters @files --\nsymbol_error: 1\n", "-- sys/d @dir --\n-- proc -> sys --\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		base := archives.Parse(t, variantBase)
		v, err := capture.Parse(append([]byte(variantHead), body...))
		if err != nil || !v.IsVariant() {
			return
		}
		whole, err := v.On(base)
		if err != nil {
			return
		}
		again, err := archive.Variant("base", base, whole)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := archives.Parse(t, archives.Format(t, again)).On(base); err != nil || !sameArchive(b, whole) {
			t.Fatalf("%v\n%s", err, archives.Format(t, again))
		}
	})
}
