package anonymise

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/test/archives"
)

const relations = `-- proc/sys/kernel/hostname --
gpu-1
-- rdma/mlx5_0/1/port --
state: 4
lid: 17
netdev: eth0
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/node_desc --
gpu-1 HCA-1 mlx5_0 xgpu-1 gpu-12
-- sys/devices/pci0000:a0/0000:a0:88.2/rom @base64 --
AP8gZ3B1LTEK
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/fw_ver --
28.39.1002
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/0 --
fe80:0000:0000:0000:a288:c2ff:fe3c:4e10
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/1 --
fe80:0000:0000:0000:a088:c203:003c:4e10
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/2 --
0000:0000:0000:0000:0000:ffff:0b16:212c
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/3 --
0000:0000:0000:0000:0000:ffff:0b16:212d
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/4 --
2a02:1234:5678:9abc:a288:c2ff:fe3c:4e10
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/5 --
2a02:1234:5678:9abc:a288:c2ff:fe3c:4e11
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/iwarp --
a088:c23c:4e10:0000:0000:0000:0000:0000
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/iwarp2 --
2c5e:ab50:a1c4:0000:0000:0000:0000:0000
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/6 --
0000:0000:0000:0000:0000:0000:0000:0000
-- sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/node_guid --
a088:c203:003c:4e10
-- sys/devices/pci0000:a0/0000:a0:88.2/net/ib0/address --
00:00:10:49:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:3c:4e:10
-- sys/link -> devices/pci0000:a0/0000:a0:88.2 --
-- sys/devices/pci0000:a0/0000:a0:88.2/net/eth0/address --
a0:88:c2:3c:4e:10
-- sys/devices/pci0000:a0/0000:a0:88.2/net/eth1/address --
a0:88:c2:3c:4e:11
-- sys/devices/pci0000:a0/0000:a0:88.2/net/eth2/address --
b8:3f:d2:50:a1:c4
`

func contentsOf(a *capture.Archive) map[string]string {
	m := map[string]string{}
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			m[r.At.String()+" "+e.Path] = string(e.Data) + e.Target
		}
	}
	return m
}

func TestAnonymiseKeepsRelations(t *testing.T) {
	a := archives.Parse(t, archives.Header+relations+"-- +15s/sys/devices/pci0000:a0/0000:a0:88.2/net/eth0/address --\nb8:3f:d2:50:a1:c4\n")
	Archive(a)
	got := contentsOf(a)
	want := map[string]string{
		"0s proc/sys/kernel/hostname": "host-1\n",
		"0s rdma/mlx5_0/1/port":       "state: 4\nlid: 17\nnetdev: eth0\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/node_desc":           "host-1 HCA-1 mlx5_0 x x\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/fw_ver":              "28.39.1002\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/net/eth0/address":                      "a0:88:c2:10:00:10\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/net/eth1/address":                      "a0:88:c2:10:00:11\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/net/eth2/address":                      "b8:3f:d2:10:00:24\n",
		"15s sys/devices/pci0000:a0/0000:a0:88.2/net/eth0/address":                     "b8:3f:d2:10:00:24\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/node_guid":           "a088:c203:0010:0010\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/0":      "fe80:0000:0000:0000:a288:c2ff:fe10:0010\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/1":      "fe80:0000:0000:0000:a088:c203:0010:0010\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/2":      "0000:0000:0000:0000:0000:ffff:0a0a:000c\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/3":      "0000:0000:0000:0000:0000:ffff:0a0a:000d\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/4":      "2001:0db8:0000:0000:a288:c2ff:fe10:0010\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/5":      "2001:0db8:0000:0000:a288:c2ff:fe10:0011\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/6":      "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/iwarp":  "a088:c210:0010:0000:0000:0000:0000:0000\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/ports/1/gids/iwarp2": "2c5e:ab10:0024:0000:0000:0000:0000:0000\n",
		"0s sys/devices/pci0000:a0/0000:a0:88.2/net/ib0/address":                       "00:00:10:49:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:10:00:10\n",
		"0s sys/link": "devices/pci0000:a0/0000:a0:88.2",
	}
	for name, w := range want {
		// The numbers follow the order of the addresses on this machine.
		if got[name] != w {
			t.Errorf("%s: %q, want %q", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	if a.Meta.Hostname != "host-1" || !a.Meta.Anonymised {
		t.Errorf("%+v", a.Meta)
	}
	if want := []string{
		"sys/devices/pci0000:a0/0000:a0:88.2/infiniband/mlx5_0/node_desc (in part)",
		"sys/devices/pci0000:a0/0000:a0:88.2/rom",
	}; !slices.Equal(a.Meta.LeftOut, want) {
		t.Errorf("left out: %q, want %q", a.Meta.LeftOut, want)
	}
	if text := archives.Format(t, a); archives.Format(t, archives.Parse(t, text)) != text {
		t.Error("it does not come back as it was written")
	}
}

// TestAnonymiseInterfaceIDs: an interface ID that has no address of a device is replaced whole, and stays the same in
// each network. That of a device keeps its vendor.
func TestAnonymiseInterfaceIDs(t *testing.T) {
	gids := func(lines ...string) string {
		text := archives.Header + "-- sys/devices/d/infiniband/mlx5_0/node_guid --\nb83f:d203:005a:b7c0\n"
		for i, l := range lines {
			text += fmt.Sprintf("-- sys/devices/d/infiniband/mlx5_0/ports/1/gids/%d --\n%s\n", i, l)
		}
		return text
	}
	a := archives.Parse(t, gids(
		"fe80:0000:0000:0000:b83f:d203:005a:b7c4", "fe80:0000:0000:0000:ba3f:d2ff:fe5a:b7c4",
		"fe80:0000:0000:0000:75a1:d4c2:9e5a:b7c9", "fdaa:0000:0000:0001:75a1:d4c2:9e5a:b7c9",
		"fdaa:0000:0000:0001:0000:0000:0000:0007",
	))
	Archive(a)
	want := archives.Parse(t, strings.Replace(gids(
		"fe80:0000:0000:0000:b83f:d203:0010:0014", "fe80:0000:0000:0000:ba3f:d2ff:fe10:0014",
		"fe80:0000:0000:0000:0000:0000:0010:0019", "fd00:0db8:0000:0000:0000:0000:0010:0019",
		"fd00:0db8:0000:0000:0000:0000:0000:0007",
	), "005a:b7c0", "0010:0010", 1))
	want.Meta = a.Meta
	archives.Differ(t, archives.Format(t, a), archives.Format(t, want))
	once := archives.Format(t, a)
	Archive(a)
	archives.Differ(t, archives.Format(t, a), once)
}

func TestAnonymiseTwiceIsAnonymiseOnce(t *testing.T) {
	a := archives.Parse(t, archives.Header+relations)
	Archive(a)
	once := archives.Format(t, a)
	Archive(a)
	archives.Differ(t, archives.Format(t, a), once)
}

func TestHostNamesThatAreWordsOfPathsAndTexts(t *testing.T) {
	for _, name := range []string{"dev", "sys", "rdma", "mlx5", "state", "net.example.com"} {
		t.Run(name, func(t *testing.T) {
			a := archives.Parse(t, archives.Header+"-- dev/infiniband/uverbs0 @unread --\n-- rdma/mlx5_0/1/port --\nphysical_state: 5\n-- sys/devices/d/node_desc --\n"+name+" d 3\n")
			a.Meta.Hostname = name
			Archive(a)
			var paths []string
			for _, e := range a.Rounds[0].Entries {
				paths = append(paths, e.Path)
			}
			if !slices.Equal(paths, []string{"dev/infiniband/uverbs0", "rdma/mlx5_0/1/port", "sys/devices/d/node_desc"}) {
				t.Errorf("%q", paths)
			}
			got := contentsOf(a)
			if s := got["0s rdma/mlx5_0/1/port"]; s != "physical_state: 5\n" {
				t.Errorf("%q", s)
			}
			if s := got["0s sys/devices/d/node_desc"]; !strings.HasPrefix(s, "host-1 d x\n") {
				t.Errorf("%q", s)
			}
			if a.Meta.Hostname != "host-1" {
				t.Errorf("%q", a.Meta.Hostname)
			}
		})
	}
	for _, name := range []string{"", ".", "(*"} {
		a := archives.Parse(t, archives.Header+"-- sys/devices/d/node_desc --\nd\n")
		a.Meta.Hostname = name
		Archive(a)
		if got := contentsOf(a)["0s sys/devices/d/node_desc"]; got != "d\n" {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestAnonymiseConfig: only addresses change in the configuration file, even if the host name equals one of its keys.
func TestAnonymiseConfig(t *testing.T) {
	a := &capture.Archive{
		Meta: capture.Meta{Hostname: "roce"},
		Rounds: []capture.Round{{Entries: []capture.Entry{
			{Path: "sys/devices/d/node_desc", Data: []byte("roce HCA-1\n")}, {Path: "sys/devices/zzz/vendor"},
		}}},
	}
	if a.Config() != nil {
		t.Error("there is a configuration file")
	}
	a.SetConfig([]byte("old"))
	a.SetConfig([]byte("pins: [match: {hostname: host-1, board_id: a088:c203:003c:4e10}, roce: lossless]\n"))
	Archive(a)
	if got, want := string(a.Config()), "pins: [match: {hostname: host-1, board_id: a088:c203:0010:0010}, roce: lossless]\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := string(a.Rounds[0].Entries[1].Data); got != "host-1 HCA-1\n" {
		t.Errorf("%q", got)
	}
	if !slices.IsSortedFunc(a.Rounds[0].Entries, func(x, y capture.Entry) int { return strings.Compare(x.Path, y.Path) }) {
		t.Error("entries are not in order")
	}
	a.SetConfig(nil)
	if a.Config() != nil || len(a.Rounds[0].Entries) != 2 {
		t.Errorf("%+v", a.Rounds[0].Entries)
	}
}

// Identifiers without colons keep their relations, in either byte order.
func TestAnonymiseBareIDs(t *testing.T) {
	a := archives.Parse(t, archives.Header+`-- sys/class/infiniband/mlx5_0/sys_image_guid --
4cbb:4703:002e:91a0
-- sys/class/net/a/phys_switch_id --
a0912e000347bb4c
-- sys/class/net/b/phys_switch_id --
b49691ffffc7a158
-- sys/class/net/c/phys_switch_id --
own text
-- sys/class/net/d/phys_port_id --
000000000000
-- sys/class/net/e/phys_port_id --
b49691c7a158
`)
	Archive(a)
	got := contentsOf(a)
	for name, want := range map[string]string{
		"infiniband/mlx5_0/sys_image_guid": "4cbb:4703:0010:0010\n",
		"net/a/phys_switch_id":             "100010000347bb4c\n",
		"net/b/phys_switch_id":             "b49691ffff100028\n",
		"net/c/phys_switch_id":             "x\n",
		"net/d/phys_port_id":               "000000000000\n",
		"net/e/phys_port_id":               "b49691100028\n",
	} {
		if got := got["0s sys/class/"+name]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func FuzzAnonymise(f *testing.F) {
	f.Add([]byte(strings.Replace(archives.Header, `"gpu-1"`, `"-"`, 1) + "-- sys/a --\n0-00\n"))
	f.Add([]byte(archives.Header + "-- sys/mac --\na0:88:c2:3c:4e:10\n-- nvml/gpu/0 --\nuuid: GPU-1\n-- proc/7/process --\ncommand: x\n-- sys/d/vpd @base64 --\nggA=\n"))
	f.Add([]byte(archives.Header + "-- ethtool/eth0/eeprom/50-00-0 --\n0: 19 50 00\n14: 3c 00\n16: 7f 8c 01 02\n254: ab cd\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := capture.Parse(data)
		if err != nil {
			return
		}
		Archive(a)
		once := archives.Format(t, a)
		again, err := capture.Parse([]byte(once))
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		Archive(again)
		if twice := archives.Format(t, again); twice != once {
			t.Errorf("%s\nbecame\n%s", once, twice)
		}
	})
}

// TestHostNameOfBytes: sethostname(2) accepts any bytes.
func TestHostNameOfBytes(t *testing.T) {
	a := &capture.Archive{Meta: capture.Meta{Hostname: "gpu\xff-1"}}
	if Archive(a); a.Meta.Hostname != Host {
		t.Errorf("%q", a.Meta.Hostname)
	}
}

// TestAnonymiseIPv4: addresses of routes and neighbours get the pseudonyms of GIDs with the same address; masks and the
// default route stay.
func TestAnonymiseIPv4(t *testing.T) {
	a := archives.Parse(t, `-- capture.json --
{"version":2,"rounds":["0s"]}
-- proc/1/net/route --
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010A10AC	0003	0	0	100	00000000	0	0	0
eth0	000A10AC	00000000	0001	0	0	100	00FFFFFF	0	0	0
eth1	000A10AC	00000000	0001	0	0	100	00FFFFFF	0	0	0
-- proc/1/net/arp --
IP address       HW type     Flags       HW address            Mask     Device
172.16.10.7      0x1         0x2         b8:3f:d2:10:01:07     *        eth0
172.16.10.7      0x1         0x2         b8:3f:d2:10:01:09     *        eth1
172.16.77.9      0x1         0x0         00:00:00:00:00:00     *        eth1
-- sys/devices/d/ports/1/gids/0 --
0000:0000:0000:0000:0000:ffff:ac10:0a07
-- sys/module/mlx5_core/version --
172.16.10.7
`)
	Archive(a)
	want := []string{
		"eth0	00000000	01000A0A	0003	0	0	100	00000000", "eth0	00000A0A	00000000	0001	0	0	100	00FFFFFF",
		"eth1	00000A0A	00000000", "10.10.0.7      0x1         0x2         b8:3f:d2:10:00:17",
		"10.10.0.7      0x1         0x2         b8:3f:d2:10:00:19", "10.10.0.25      0x1",
		"0000:0000:0000:0000:0000:ffff:0a0a:0007", "-- sys/module/mlx5_core/version --\n172.16.10.7",
	}
	got := archives.Format(t, a)
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is missing in\n%s", w, got)
		}
	}
}

// TestAnonymiseHostFiles: files outside of sysfs keep what their form knows. One without a form is left out and named.
func TestAnonymiseHostFiles(t *testing.T) {
	a := archives.Parse(t, archives.Header+`-- etc/nccl.conf --
# alice@gpu-17, 10.1.2.3
NCCL_IB_HCA=mlx5_0:1,mlx5_1
NCCL_IB_TC=106
NCCL_NET_GDR_LEVEL=PXB
NCCL_RAS_ADDR=gpu-17:28028
NCCL_SITE_TOKEN=c2VjcmV0
NCCL_PIN=187723572702975
PASSWORD=secret
free text of alice
-- etc/cufile.conf --
alice
-- etc/modprobe.d/site.conf --
# of alice
softdep nvidia post: nvidia-peermem
install x /home/alice/run
-- etc/hosts --
10.0.0.17 gpu-17.site
-- exporter/state.json --
{"functions": {"guid/b83f:d203:00ab:cde7": {"boot": "4dc3109b-e593-4fae-9077-8e4835b180e1"}}, "places": {
"guid/b83f:d203:00ab:cde7": {"path": "0000:00:01.0 0000:01:00.0"},
"guid/b83f:d203:00ab:cde7/1": {"leaf": "leaf3.site", "leaf_port": "to gpu-17 \"rack\" 4"}}}
-- proc/1/net/ipv6_route --
fd123456789000010000000000000000 40 00000000000000000000000000000000 00 fe80000000000000ba3fd2fffeabcde7 00000100 1 0 1 eth0
2a021234567800010000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 1 0 1 eth0
-- proc/sys/kernel/random/boot_id --
4dc3109b-e593-4fae-9077-8e4835b180e1
-- sys/devices/d/net/eth0/address --
b8:3f:d2:ab:cd:e7
-- sys/devices/d/ports/1/gids/0 --
fd12:3456:7890:0001:ba3f:d2ff:feab:cde7
-- +15s/etc/nccl.conf --
NCCL_IB_TC=secret
`)
	Archive(a)
	got := contentsOf(a)
	for name, want := range map[string]string{
		"0s etc/nccl.conf": "NCCL_IB_HCA=mlx5_0:1,mlx5_1\nNCCL_IB_TC=106\nNCCL_NET_GDR_LEVEL=PXB\nNCCL_RAS_ADDR=x\n" +
			"NCCL_SITE_TOKEN=x\nNCCL_PIN=x\nPASSWORD=x\n",
		"15s etc/nccl.conf":           "NCCL_IB_TC=x\n",
		"0s etc/modprobe.d/site.conf": "softdep nvidia post: nvidia-peermem\n",
		"0s exporter/state.json": `{"functions": {"guid/b83f:d203:0010:0017": {"boot": ` +
			`"00000001-0000-4000-9000-000000000000"}}, "places": {` + "\n" +
			`"guid/b83f:d203:0010:0017": {"path": "0000:00:01.0 0000:01:00.0"},` + "\n" +
			`"guid/b83f:d203:0010:0017/1": {"leaf": "", "leaf_port": ""}}}` + "\n",
		"0s proc/sys/kernel/random/boot_id": "00000001-0000-4000-9000-000000000000\n",
		"0s sys/devices/d/net/eth0/address": "b8:3f:d2:10:00:17\n",
		"0s sys/devices/d/ports/1/gids/0":   "fd00:0db8:0000:0000:ba3f:d2ff:fe10:0017\n",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	routes := got["0s proc/1/net/ipv6_route"]
	for _, want := range []string{
		"fd000db8000000000000000000000000 40 ", " fe80000000000000ba3fd2fffe100017 ", "20010db8000000000000000000000000 40 ",
	} {
		if !strings.Contains(routes, want) {
			t.Errorf("%q is missing in\n%s", want, routes)
		}
	}
	left := []string{
		"etc/cufile.conf", "etc/hosts", "etc/modprobe.d/site.conf (in part)", "etc/nccl.conf (in part)",
		"exporter/state.json (in part)",
	}
	if _, there := got["0s etc/cufile.conf"]; there || !slices.Equal(a.Meta.LeftOut, left) {
		t.Errorf("a file without a form: %q, left out %q", got["0s etc/cufile.conf"], a.Meta.LeftOut)
	}
	text := archives.Format(t, a)
	if !strings.Contains(text, `"left_out": ["`+strings.Join(left, `","`)+`"]`) {
		t.Errorf("capture.json does not name it:\n%.400s", text)
	}
	again := archives.Parse(t, text)
	Archive(again)
	archives.Differ(t, archives.Format(t, again), text)
}
