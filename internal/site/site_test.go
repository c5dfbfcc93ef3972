package site

import (
	"reflect"
	"strings"
	"testing"
)

// rail is a port with every fact known.
var rail = Subject{
	Hostname: "gpu-1", Device: "mlx5_0", BoardID: "MT_0000000838", PCIAddress: "0000:9a:00.0", LinkLayer: "InfiniBand",
	Netdevs: []string{"ib0", "ib/1"}, Port: 1,
}

func TestMatch(t *testing.T) {
	for match, want := range map[string]bool{
		`device: "*"`:                           true,
		`device: mlx5_0`:                        true,
		`device: MLX5_0`:                        false,
		`device: mlx5`:                          false,
		`device: "mlx5_?"`:                      true,
		`device: "mlx5_[1-9]"`:                  false,
		`device: "mlx5_[^1-9]"`:                 true,
		`device: 'mlx5\_0'`:                     true,
		`device: [mlx4_0, mlx5_0]`:              true,
		`device: [mlx4_0, mlx5_1]`:              false,
		`hostname: "gpu-*"`:                     true,
		`hostname: GPU-1`:                       false,
		`board_id: MT_0000000838`:               true,
		`board_id: "mt_*"`:                      false,
		`pci_address: "0000:9A:00.0"`:           true,
		`pci_address: "*:9a:00.?"`:              true,
		`link_layer: INFINIBAND`:                true,
		`link_layer: "*band"`:                   true,
		`link_layer: Ethernet`:                  false,
		`port: 1`:                               true,
		`port: 2`:                               false,
		`port: "*"`:                             true,
		`netdev: ib0`:                           true,
		`netdev: "ib?1"`:                        true,
		`netdev: "ib*"`:                         true,
		`netdev: ib1`:                           false,
		`device: mlx5_0, port: 2`:               false,
		`device: mlx5_0, port: 1, netdev: ib/1`: true,
	} {
		t.Run(match, func(t *testing.T) {
			if got := parsed(t, "ignore: [match: {"+match+"}]").Ignored(rail); got != want {
				t.Error(got)
			}
		})
	}
}

// TestIgnoredGPU: by index or UUID, and never by an entry that is of devices.
func TestIgnoredGPU(t *testing.T) {
	three := GPU{Hostname: "gpu-1", Index: "3", UUID: "GPU-4d1a", PCIAddress: "0000:9D:00.0"}
	for match, want := range map[string]bool{
		`gpu: 3`:                                true,
		`gpu: [1, 3]`:                           true,
		`gpu: 4`:                                false,
		`gpu: GPU-4d1a`:                         true,
		`gpu: "GPU-*"`:                          true,
		`gpu: 3, hostname: "gpu-?"`:             true,
		`gpu: 3, hostname: gpu-2`:               false,
		`gpu: "*", pci_address: "0000:9d:00.0"`: true,
		`gpu: "*", pci_address: "0000:9e:00.0"`: false,
		`hostname: gpu-1`:                       false,
		`device: "*"`:                           false,
		`pci_address: "0000:9d:00.0"`:           false,
	} {
		t.Run(match, func(t *testing.T) {
			c := parsed(t, "ignore: [match: {"+match+"}]")
			if got := c.IgnoredGPU(three); got != want {
				t.Error(got)
			}
			if strings.HasPrefix(match, "gpu") && c.Ignored(rail) {
				t.Error("a port is ignored")
			}
		})
	}
	if c := parsed(t, `ignore: [match: {gpu: "*"}]`); c.IgnoredGPU(GPU{}) || (*Config)(nil).IgnoredGPU(three) {
		t.Error("what is not known is ignored, or what nobody says")
	}
}

// TestUnknownFacts: no key matches what the machine does not tell.
func TestUnknownFacts(t *testing.T) {
	for _, key := range []string{"hostname", "device", "board_id", "pci_address", "netdev", "port", "link_layer"} {
		t.Run(key, func(t *testing.T) {
			c := parsed(t, "ignore: [match: {"+key+`: "*"}]`)
			if c.Ignored(Subject{}) {
				t.Error("matches what is not known")
			}
			if !c.Ignored(rail) {
				t.Error("does not match what is known")
			}
			device := rail
			device.Port = 0
			if got, want := c.Ignored(device), key != "netdev" && key != "port" && key != "link_layer"; got != want {
				t.Errorf("the device itself is ignored: %v", got)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	c := parsed(t, `pins:
- match: {device: "*"}
  rate: 100G
  active: true
  subnet_manager: true
  role: other
  pkeys: [0x7fff]
- match: {link_layer: InfiniBand}
  rate: 400G
  lanes: 4
  pkeys: []
- match: {device: mlx5_1}
  rate: 1G
- match: {port: 1}
  active: false
  subnet_manager: false
  role: compute
- match: {hostname: "gpu-*"}
  ofed: 24.*
- match: {hostname: gpu-1}
  ofed: 25.10-*
- match: {device: mlx5_0}
  present: true
`)
	want := Settings{
		Rate: ptr(400e9), Lanes: ptr(uint64(4)), Role: "compute", OFED: "25.10-*", PKeys: []uint16{}, Idle: true,
	}
	if got := c.Settings(rail); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	device := rail
	device.Port = 0
	want = Settings{
		Rate: ptr(100e9), Role: "other", OFED: "25.10-*", Active: true, SubnetManager: true, PKeys: []uint16{0x7fff},
	}
	if got := c.Settings(device); !reflect.DeepEqual(got, want) {
		t.Errorf("of the device: %+v, want %+v", got, want)
	}
	for host, want := range map[string]string{"gpu-1": "25.10-*", "gpu-2": "24.*", "cpu-1": "", "": ""} {
		if got := c.OFED(host); got != want {
			t.Errorf("OFED of %q: %q, want %q", host, got, want)
		}
	}
	for version, want := range map[string]bool{"25.10-1.7.1": true, "25.10": false, "24.10-1": false, "": false} {
		if MatchOFED("25.10-*", version) != want {
			t.Errorf("OFED %q: %v", version, !want)
		}
	}
}

func TestRequired(t *testing.T) {
	c := parsed(t, `pins:
- match: {hostname: "gpu-*", device: [mlx5_0, mlx5_1, 'mlx5\_2']}
  present: true
- match: {pci_address: "0000:9A:00.0"}
  present: true
- match: {device: mlx5_0}
  present: true
- match: {device: mlx5_5, pci_address: "0000:18:00.0", hostname: gpu-2}
  present: true
- match: {device: "mlx5_[12]", hostname: gpu-2}
  present: false
- match: {device: mlx5_7}
  active: true
`)
	for host, want := range map[string][]Subject{
		"gpu-1": {{Hostname: "gpu-1", Device: "mlx5_0"}, {Hostname: "gpu-1", Device: "mlx5_1"}, {Hostname: "gpu-1", Device: "mlx5_2"}, {Hostname: "gpu-1", PCIAddress: "0000:9a:00.0"}},
		"gpu-2": {{Hostname: "gpu-2", Device: "mlx5_0"}, {Hostname: "gpu-2", PCIAddress: "0000:9a:00.0"}, {Hostname: "gpu-2", Device: "mlx5_5", PCIAddress: "0000:18:00.0"}},
		"cpu":   {{Hostname: "cpu", PCIAddress: "0000:9a:00.0"}, {Hostname: "cpu", Device: "mlx5_0"}},
	} {
		t.Run(host, func(t *testing.T) {
			if got := c.Required(host); !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestCable: the last entry that matches says where a cable ends.
func TestCable(t *testing.T) {
	c := parsed(t, `cabling:
- {match: {hostname: "gpu-*", device: "mlx5_*"}, system: leaf-1}
- {match: {device: mlx5_0, port: 1, netdev: ib/1}, system: leaf-2, port_id: Ethernet1/7}
- match: {hostname: gpu-2, device: mlx5_0}
  system: "3"
  port_id: 12
`)
	device := rail
	device.Port = 0
	other := rail
	other.Netdevs = []string{"ib0"}
	far := rail
	far.Hostname = "gpu-2"
	for _, x := range []struct {
		name string
		s    Subject
		want *Cable
	}{
		{"rail", rail, &Cable{c.Cabling[1].Match, "leaf-2", "Ethernet1/7"}},
		{"other", other, &Cable{c.Cabling[0].Match, "leaf-1", ""}},
		{"far", far, &Cable{c.Cabling[2].Match, "3", "12"}},
		{"device", device, &c.Cabling[0]},
		{"another host", Subject{Hostname: "cpu"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := c.Cable(x.s); !reflect.DeepEqual(got, x.want) {
				t.Errorf("%+v: %+v, want %+v", x.s, got, x.want)
			}
		})
	}
	if got := c.Systems(); !reflect.DeepEqual(got, []string{"3", "leaf-1", "leaf-2"}) {
		t.Error(got)
	}
	var none *Config
	if none.Cable(rail) != nil || none.Systems() != nil {
		t.Error("nobody says something")
	}
}

func TestNothingSaid(t *testing.T) {
	var s *Store
	for _, c := range []*Config{s.Current(), new(Store).Current(), {}} {
		if !reflect.DeepEqual(c.Settings(rail), Settings{}) || c.Ignored(rail) || c.Required("gpu-1") != nil ||
			c.OFED("gpu-1") != "" {
			t.Errorf("%+v says something", c)
		}
	}
	store, c := &Store{}, &Config{}
	store.Replace(c)
	if store.Current() != c {
		t.Error("not replaced")
	}
}

// TestOfHost: what is said of the host stays, and nothing of others, in words or in comments.
func TestOfHost(t *testing.T) {
	const text = `# of Secret Inc.
pins: # secret
  - match: {hostname: [secret-9, "gpu-*"], device: &secret mlx5_0} # secret
    rate: 400Gb/s
  # secret
  - match: {hostname: secret-9, device: "*"}
    lanes: 2
  - match: {hostname: "*"}
    ofed: "25.10-*"
  - match: {port: "1"}
    pkeys: [0x8001]
    congestion_control: off
ignore:
  - match: {hostname: secret-9, device: "*"}
cabling:
  - {match: {hostname: secret-9, device: mlx5_0}, system: secret-leaf, port_id: swp9}
  - {match: {hostname: gpu-1, device: mlx5_0}, system: secret-leaf, port_id: "7"}
switches:
  - {switch: secret-leaf, uplinks: 16}
peers:
  - {address: 10.1.2.3, name: secret-7 mlx5_0}
racks:
  - {match: {hostname: secret-9}, rack: secret-1}
  - {match: {hostname: "gpu-*"}, rack: secret-2}
  - {match: {hostname: [gpu-1, secret-8]}, rack: secret-3}
`
	alias := func(string) string { return "switch-1" }
	out, err := OfHost([]byte(text), "gpu-1", "host-1", alias)
	if err != nil {
		t.Fatal(err)
	}
	const want = `pins:
    - match: {hostname: host-1, device: mlx5_0}
      rate: 400Gb/s
    - match: {hostname: host-1}
      ofed: "25.10-*"
    - match: {port: "1"}
      pkeys: [0x8001]
      congestion_control: off
ignore: []
cabling:
    - {match: {hostname: host-1, device: mlx5_0}, system: switch-1, port_id: "7"}
switches: []
peers: []
racks:
    - {match: {hostname: host-1}, rack: rack-1}
    - {match: {hostname: host-1}, rack: rack-1}
`
	if string(out) != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	renamed := rail
	renamed.Hostname = "host-1"
	if got, want := parsed(t, string(out)).Settings(renamed),
		parsed(t, text).Settings(rail); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if again, err := OfHost(out, "host-1", "host-1", alias); err != nil || string(again) != string(out) {
		t.Errorf("%s, %v", again, err)
	}
	if out, err := OfHost(nil, "gpu-1", "host-1", alias); out != nil || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := OfHost([]byte("pins: 1"), "gpu-1", "host-1", alias); err == nil {
		t.Error("an invalid file is written")
	}
}

// TestUplinks: the last entry that matches a name of the switch decides.
func TestUplinks(t *testing.T) {
	c := parsed(t, `switches:
  - {switch: "Leaf-*", uplinks: 16}
  - {switch: [leaf-7, "9C63:C003:*"], uplinks: 8}
`)
	for want, names := range map[int][]string{
		16: {"leaf-1", "0000:0000:0000:0001"}, 8: {"other", "9c63:c003:0012:3450"}, 0: {"", "0000:0000:0000:0002"},
	} {
		if got := c.Uplinks(names...); got != want {
			t.Errorf("%q: %d, want %d", names, got, want)
		}
	}
	if got := c.Uplinks("leaf-7"); got != 8 {
		t.Errorf("%d", got)
	}
	if got := (*Config)(nil).Uplinks("leaf-7"); got != 0 {
		t.Errorf("%d", got)
	}
}

// TestRack: the last entry that matches the host name decides. Names of any script are taken as they are.
func TestRack(t *testing.T) {
	longest := strings.Repeat("é", 64)
	c := parsed(t, `racks:
  - {match: {hostname: "gpu-0*"}, rack: row 3/"r1"}
  - {match: {hostname: [gpu-1, gpu-01]}, rack: 12}
  - {match: {hostname: gpu-1}, rack: 12}
  - {match: {hostname: gpu-2}, rack: `+longest+`}
`)
	for host, want := range map[string]string{
		"gpu-00": `row 3/"r1"`, "gpu-01": "12", "gpu-1": "12", "gpu-2": longest, "GPU-1": "", "gpu-1.example.com": "", "": "",
	} {
		if got := c.Rack(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
	if got := (*Config)(nil).Rack("gpu-1"); got != "" {
		t.Errorf("without a file: %q", got)
	}
}

// TestWant: the last entry that matches and has the setting decides.
func TestWant(t *testing.T) {
	c := parsed(t, `setup:
  - match: {hostname: "gpu-*"}
    want: {max_read_request: 4096, numa_balancing: any}
  - match: {device: mlx5_1}
    want: {max_read_request: "512|1024"}
`)
	for _, k := range []struct {
		setting string
		of      Subject
		want    string
	}{
		{"max_read_request", Subject{Hostname: "gpu-1", Device: "mlx5_0"}, "4096"},
		{"max_read_request", Subject{Hostname: "gpu-1", Device: "mlx5_1"}, "512|1024"},
		{"max_read_request", Subject{Hostname: "cpu-1", Device: "mlx5_0"}, ""},
		{"numa_balancing", Subject{Hostname: "gpu-1"}, "any"},
		{"numa_balancing", Subject{Hostname: "gpu-1", Device: "mlx5_1"}, "any"},
		{"acs", Subject{Hostname: "gpu-1", Device: "mlx5_1"}, ""},
	} {
		if got := c.Want(k.setting, k.of); got != k.want {
			t.Errorf("%s of %+v: %q, want %q", k.setting, k.of, got, k.want)
		}
	}
	if got := (*Config)(nil).Want("acs", Subject{}); got != "" {
		t.Errorf("without a file: %q", got)
	}
}

func TestPeer(t *testing.T) {
	c := parsed(t, `peers:
  - {address: "0000:0000:0000:0000:0000:ffff:0a00:0011", name: gpu-17 mlx5_3}
  - {address: FE80::17, name: gpu-17}
  - {address: lid:9, name: gpu-9}
  - {address: 10.0.0.2, name: "gpu \"2\""}
`)
	for address, want := range map[string]string{
		"10.0.0.17": "gpu-17 mlx5_3", "fe80::17": "gpu-17", "lid:9": "gpu-9", "10.0.0.2": `gpu "2"`,
		"10.0.0.1": "", "lid:99": "", "": "",
	} {
		if got := c.Peer(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got := (*Config)(nil).Peer("10.0.0.17"); got != "" {
		t.Error(got)
	}
}
