package site

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/setup"
)

func ptr[T any](v T) *T { return &v }

func parsed(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Config{
		"":                     {},
		"# nothing\n":          {},
		"---\n":                {},
		"pins:\nignore:\n":     {},
		"pins: []\nignore: []": {Pins: []Pin{}, Ignore: []Ignore{}},
		`pins:
  - match: {hostname: "gpu-*", board_id: [MT_1, "MT_2*"], link_layer: infiniband, port: 1, netdev: ib0, pci_address: "0000:9A:00.0", device: 'mlx5_[0-3]'}
    rate: 400Gb/s
    lanes: 4
    role: compute
    active: true
    subnet_manager: true
    roce: auto
    congestion_control: off
    pkeys: [0x8001, 32767]
`: {Pins: []Pin{{
			Match: Match{
				Hostname: Globs{"gpu-*"}, BoardID: Globs{"MT_1", "MT_2*"}, LinkLayer: Globs{"infiniband"}, Port: Globs{"1"},
				Netdev: Globs{"ib0"}, PCIAddress: Globs{"0000:9A:00.0"}, Device: Globs{"mlx5_[0-3]"},
			},
			Rate: ptr(Rate(400e9)), Lanes: ptr(uint64(4)), Role: "compute", Active: ptr(true), SubnetManager: ptr(true),
			RoCE: "auto", CongestionControl: "off", PKeys: []uint16{0x8001, 0x7fff},
		}}},
		`pins:
  - match: {hostname: "*"}
    ofed: "*"
  - match: {device: "*"}
    rate: 2.5G
    active: false
    pkeys: []
  - match: {device: [mlx5_0, mlx5_1], hostname: a*}
    present: true
  - match: {device: mlx5_0, pci_address: "0000:18:00.0"}
    present: true
  - match: {device: mlx5_*}
    present: false
ignore:
  - match: {port: [2, "3"]}
`: {
			Pins: []Pin{
				{Match: Match{Hostname: Globs{"*"}}, OFED: "*"},
				{Match: Match{Device: Globs{"*"}}, Rate: ptr(Rate(2.5e9)), Active: ptr(false), PKeys: []uint16{}},
				{Match: Match{Device: Globs{"mlx5_0", "mlx5_1"}, Hostname: Globs{"a*"}}, Present: ptr(true)},
				{Match: Match{Device: Globs{"mlx5_0"}, PCIAddress: Globs{"0000:18:00.0"}}, Present: ptr(true)},
				{Match: Match{Device: Globs{"mlx5_*"}}, Present: ptr(false)},
			},
			Ignore: []Ignore{{Match{Port: Globs{"2", "3"}}}},
		},
	} {
		if c := parsed(t, text); !reflect.DeepEqual(*c, want) {
			t.Errorf("%s\n%+v, want %+v", text, *c, want)
		}
	}
}

// pinFile returns a file with one pin that matches all devices; the given lines begin in line 3.
func pinFile(lines string) string { return "pins:\n- match: {device: \"*\"}\n  " + lines }

// settingIDs returns the known keys of want.
func settingIDs() string {
	var out []string
	for _, c := range setup.Checks {
		out = append(out, c.ID)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// badLabel is the error of a text that would be another one as the value of a label.
const badLabel = "must be one line of at most 128 bytes, without blanks at its ends and without control characters"

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"pins: [":                         "line 1: invalid YAML: did not find expected node content",
		"a: b: c":                         "line 1: invalid YAML: mapping values are not allowed in this context",
		"pins: []\n\xff":                  "line 2: not UTF-8 text, check that it is the right file",
		"pins: []\n\x01\n\a":              "line 2: control character U+0001 not allowed\nline 3: control character U+0007 not allowed",
		"pins: []\n# \u0090":              "line 2: control character U+0090 not allowed",
		"pins: *a":                        "line 1: invalid YAML: unknown anchor 'a' referenced",
		"pins:\n- match: *b\n":            "line 2: invalid YAML: unknown anchor 'b' referenced",
		"pins: []\nb: c: d\n":             "line 2: invalid YAML: mapping values are not allowed in this context",
		"pins: []\n\n\tx: 1":              "line 3: invalid YAML: found character that cannot start any token",
		"pins:\n- match: {a\n  rate: 1\n": "line 2: invalid YAML: did not find expected ',' or '}'",
		"pins:\n  - match: {device: x}\n rate: 3\n": "line 3: invalid YAML: did not find expected key",
		"%FOO\n":             "line 1: invalid YAML: found unknown directive name",
		"pin: []":            `line 1: the file: unknown key "pin", known keys: cabling, ignore, peers, pins, racks, setup, switches`,
		"- a":                "line 1: the file: must be a mapping with the keys cabling, ignore, peers, pins, racks, setup, switches",
		"pins: {}":           "line 1: pins: must be a list",
		"pins: x":            "line 1: pins: must be a list",
		"pins: [x]":          "line 1: pins: must be a mapping with the keys active, congestion_control, lanes, match, ofed, pkeys, present, rate, roce, role, subnet_manager",
		"pins: []\npins: ":   `line 2: mapping key "pins" already defined at line 1`,
		"pins: []\n---\n":    "line 2: more than one YAML document: remove the line ---",
		"[a]: b":             `line 1: unknown key "": keys are names`,
		"a: &x []\npins: *x": "line 2: pins: alias *x not supported: write the value",

		pinFile("rate: 400"):               `line 3: rate: "400": unit missing: write 400Gb/s`,
		pinFile("rate: 0x10"):              `line 3: rate: "0x10": must be in gigabits per second: 400Gb/s, 400Gb or 400G`,
		pinFile("rate: 50GB/s"):            `line 3: rate: "50GB/s": must be in gigabits per second: 400Gb/s, 400Gb or 400G`,
		pinFile("rate: 0G"):                `line 3: rate: "0G": must be greater than 0: remove the key, or set active: false`,
		pinFile("rate: [1G]"):              "line 3: rate: must be a single value",
		pinFile("lanes: 0"):                `line 3: lanes: "0": must be an integer from 1 to 16`,
		pinFile("lanes: 4x"):               `line 3: lanes: "4x": must be an integer from 1 to 16`,
		pinFile("lanes: 4.0"):              `line 3: lanes: "4.0": must be an integer from 1 to 16`,
		pinFile("lanes: {}"):               "line 3: lanes: must be a single value",
		pinFile("role: storage"):           `line 3: role: "storage": must be one of compute, other, nvlink_management`,
		pinFile("role:"):                   `line 3: role: "": must be one of compute, other, nvlink_management`,
		pinFile("role: []"):                "line 3: role: must be a single value",
		pinFile("active: yes"):             `line 3: active: "yes": must be true or false`,
		pinFile("active: []"):              "line 3: active: must be a single value",
		pinFile("roce: lossles"):           `line 3: roce: "lossles": must be one of lossless, lossy, auto`,
		pinFile("ofed: '*'"):               "line 2: ofed: applies to the host: use a separate pin whose match has only hostname",
		pinFile("pkeys: 0x8001"):           "line 3: pkeys: must be a list",
		pinFile("pkeys: [0]"):              `line 3: pkeys: "0": must be an integer from 1 to 65535`,
		pinFile("pkeys: [[1]]"):            "line 3: pkeys: list within a list: write all values in one list",
		pinFile("pkeys: [65536]"):          `line 3: pkeys: "65536": must be an integer from 1 to 65535`,
		pinFile("speed: 400Gb/s"):          `line 3: pins: unknown key "speed", known keys: active, congestion_control, lanes, match, ofed, pkeys, present, rate, roce, role, subnet_manager`,
		pinFile("congestion_control: ecn"): `line 3: congestion_control: "ecn": must be one of dcqcn, zerotouch_rtt, off`,
		pinFile("present: true"):           "line 2: present: match must name the device: set device or pci_address without a glob",
		pinFile(""):                        "line 2: pin: no expectation: add rate, active or another key besides match",
		pinFile("lanes: 17\n  roce: x"): `line 3: lanes: "17": must be an integer from 1 to 16` + "\n" +
			`line 4: roce: "x": must be one of lossless, lossy, auto`,

		"pins:\n- match: {device: [b,\n  [a]]}\n  lanes: 4":                                "line 3: device: list within a list: write all values in one list",
		"switches:\n- {switch: [[a]], uplinks: 1}":                                         "line 2: switch: list within a list: write all values in one list",
		"cabling:\n- match: {device: a}":                                                   "line 2: cabling: system missing: add the name of the switch, and port_id",
		"cabling:\n- system: a":                                                            `line 2: cabling: match is empty: to match every port, set device: "*"`,
		"cabling:\n- {match: {gpu: 1}, system: a}":                                         "line 2: gpu: not supported in cabling: match the NIC by device",
		"cabling:\n- {match: {device: a}, system: , port: 1}":                              "line 2: system: empty: remove the key or set a value\nline 2: cabling: unknown key \"port\", known keys: match, port_id, system",
		"setup:\n- match: {device: a}":                                                     "line 2: setup: want missing: add a setting and its value, such as max_read_request: 4096 (docs/setup.md)",
		"setup:\n- want: {acs: off}":                                                       `line 2: setup: match is empty: to match every port, set device: "*"`,
		"setup:\n- {match: {gpu: 1}, want: {acs: off}}":                                    "line 2: gpu: not supported in setup, only in ignore",
		"setup:\n- {match: {device: a}, want: {acs: true}}":                                `line 2: acs: YAML reads "true" as bool: quote it`,
		"setup:\n- {match: {device: a}, want: {acs: }}":                                    "line 2: acs: empty: remove the key or set a value",
		"cabling:\n- {match: {device: a}, system: a, port_id: }":                           "line 2: port_id: empty: remove the key or set a value",
		"switches:\n- {switch: leaf-1}":                                                    "line 2: switches: uplinks missing: add the number of its links to other switches",
		"switches:\n- {uplinks: 4}":                                                        "line 2: switches: switch missing: add the node description or the GUID of the switch, or a glob",
		"switches:\n- {switch: a, uplinks: 0}":                                             `line 2: uplinks: "0": must be an integer from 1 to 1024`,
		"switches:\n- {switch: [], uplinks: 4}":                                            "line 2: switch: empty list matches nothing: remove the key or add a glob",
		"racks:\n- {match: {hostname: a}}":                                                 "line 2: racks: rack missing: add the name of the rack",
		"racks:\n- rack: r1":                                                               "line 2: racks: match is empty: add hostname, with the hosts of the rack",
		"racks:\n- {match: {hostname: a, device: b}, rack: r1}":                            "line 2: device: not supported in racks: match the host by hostname",
		"racks:\n- {match: {gpu: 1}, rack: r1}":                                            "line 2: gpu: not supported in racks: match the host by hostname",
		"racks:\n- {match: {hostname: a}, rack: }":                                         "line 2: rack: empty: remove the key or set a value",
		"racks:\n- {match: {hostname: a}, rack: 1.5}":                                      `line 2: rack: YAML reads "1.5" as float: quote it`,
		"racks:\n- {match: {hostname: a}, rack: [r1, r2]}":                                 "line 2: rack: must be a single value",
		"racks:\n- {match: {hostname: a}, name: r1}":                                       `line 2: racks: unknown key "name", known keys: match, rack`,
		"racks: {a: r1}":                                                                   "line 1: racks: must be a list",
		"racks:\n- {match: {hostname: a}, rack: \"r1\\n# r2\"}":                            `line 2: rack: "r1\n# r2": ` + badLabel,
		"racks:\n- {match: {hostname: a}, rack: \"\\e[8m\"}":                               `line 2: rack: "\x1b[8m": ` + badLabel,
		"racks:\n- {match: {hostname: a}, rack: \"r\\u202e1\"}":                            `line 2: rack: "r\u202e1": ` + badLabel,
		"racks:\n- {match: {hostname: a}, rack: ' r1'}":                                    `line 2: rack: " r1": ` + badLabel,
		"racks:\n- {match: {hostname: a}, rack: ' '}":                                      `line 2: rack: " ": ` + badLabel,
		"racks:\n- {match: {hostname: a}, rack: " + strings.Repeat("x", 129) + "}":         `line 2: rack: "` + strings.Repeat("x", 60) + `…": ` + badLabel,
		"ignore:\n- match: {}":                                                             `line 2: ignore: match is empty: to match every port, set device: "*"`,
		"ignore:\n- {}":                                                                    `line 2: ignore: match is empty: to match every port, set device: "*"`,
		"pins:\n- rate: 1G":                                                                `line 2: pin: match is empty: to match every port, set device: "*"`,
		"ignore:\n- match:":                                                                "line 2: match: empty: remove the key or set a value",
		"ignore:\n- match: {dev: x}":                                                       `line 2: match: unknown key "dev", known keys: board_id, device, gpu, hostname, link_layer, netdev, pci_address, port`,
		"ignore:\n- match: x":                                                              "line 2: match: must be a mapping with the keys board_id, device, gpu, hostname, link_layer, netdev, pci_address, port",
		"ignore: [~]":                                                                      "line 1: ignore: empty entry: remove it or set a value",
		"ignore:\n- match: {device: [a, ]}\n  ~: x":                                        `line 3: unknown key "~": keys are names`,
		"setup:\n- {match: {device: a}, want: {acs: off,\n  asc: off}}":                    `line 3: want: unknown key "asc", known keys: ` + settingIDs(),
		"setup:\n- {match: {device: a}, want: [x]}":                                        "line 2: want: must be a mapping of settings to values",
		"setup:\n- {match: {device: a}, want: {acs: [x]}}":                                 "line 2: acs: must be a single value",
		"pins:\n- {match: {device: a}, <<: {lanes: 1}}":                                    `line 2: unknown key "<<": keys are names`,
		strings.Repeat("a: b\n", 201):                                                      "line 1: mapping with 201 keys, check that it is the right file",
		"ignore:\n- match: {device: }":                                                     "line 2: device: empty: remove the key or set a value",
		"ignore:\n- match: {device: []}":                                                   "line 2: device: empty list matches nothing: remove the key or add a glob",
		"ignore:\n- match: {device: [[a]]}":                                                "line 2: device: list within a list: write all values in one list",
		"ignore:\n- match: {device: '[a'}":                                                 `line 2: device: "[a": invalid glob: unmatched [ or trailing \`,
		"ignore:\n- match: {board_id: 1.5}":                                                `line 2: board_id: YAML reads "1.5" as float: quote it`,
		"ignore:\n- match: {port: 0}":                                                      `line 2: port: "0": must be a port number from 1`,
		"ignore:\n- match: {gpu: 3, device: a}":                                            "line 2: gpu: cannot be combined with device, only with hostname and pci_address: use separate entries",
		"pins:\n- match: {gpu: 3}\n  active: true":                                         "line 2: gpu: not supported in pins, only in ignore",
		"ignore:\n- match: {link_layer: IB}":                                               `line 2: link_layer: "IB": must be InfiniBand or Ethernet`,
		`ignore: [match: {pci_address: "18:00.0"}]`:                                        `line 1: pci_address: "18:00.0": must be a PCI address such as "0000:18:00.0", or a glob such as "*:18:00.?"`,
		"pins:\n- match: {device: a, port: 1}\n  present: true":                            "line 2: present: cannot be combined with port, which a missing device does not have: match device or pci_address (and hostname)",
		"pins:\n- match: {hostname: a}\n  present: true":                                   "line 2: present: match must name the device: set device or pci_address without a glob",
		"pins:\n- match: {device: [a, b], pci_address: \"0000:18:00.0\"}\n  present: true": "line 2: present: device and pci_address together must name one device: use a pin for each device",
		strings.Repeat("#", MaxSize+1):                                                     "file larger than 1 MiB, check that it is the right one",

		"racks:\n- {match: {hostname: [a, b]}, rack: r1}\n- {match: {hostname: [c, b, a]}, rack: r2}": `line 3: racks: hostname "b" has rack "r1" in line 2: remove it from one of the two entries`,
		"racks:\n- {match: {hostname: a*}, rack: r1}\n\n- {match: {hostname: a*}, rack: r2}":          `line 4: racks: hostname "a*" has rack "r1" in line 2: remove it from one of the two entries`,

		"peers: {10.0.0.1: gpu-1}":                   "line 1: peers: must be a list",
		"peers:\n- {address: 10.0.0.1}":              "line 2: peers: name missing: add the host and the device of the peer",
		"peers:\n- {name: gpu-1}":                    "line 2: peers: address missing: add the IP address, the GID or lid:N of the peer",
		"peers:\n- {address: 10.0.0.1, name: ' a'}":  `line 2: name: " a": ` + badLabel,
		"peers:\n- {address: 10.0.0.1, host: gpu-1}": `line 2: peers: unknown key "host", known keys: address, name`,
		"peers:\n- {address: gpu-1, name: gpu-1}":    `line 2: address: "gpu-1": must be an IP address, a GID or "lid:17"`,
		"peers:\n- {address: fe80::1%ib0, name: a}":  `line 2: address: "fe80::1%ib0": must be an IP address, a GID or "lid:17"`,

		"peers:\n- {address: 10.0.0.1, name: a}\n- {address: '::ffff:10.0.0.1', name: b}": `line 3: peers: address "10.0.0.1" has name "a" in line 2: remove one of the two entries`,
	} {
		t.Run(fmt.Sprintf("%.80s", text), func(t *testing.T) {
			c, err := Parse([]byte(text))
			if c != nil || err == nil || err.Error() != want {
				t.Errorf("%.200s\n%v\nwant\n%s", text, err, want)
			}
		})
	}
}

func TestProblemsInFile(t *testing.T) {
	_, err := Parse([]byte(pinFile("lanes: 17\n  roce: x")))
	var p Problems
	if !errors.As(err, &p) || len(p) != 2 {
		t.Fatalf("%v", err)
	}
	named := p.In("a.yml")
	if want := `a.yml:3: lanes: "17": must be an integer from 1 to 16` + "\n" +
		`a.yml:4: roce: "x": must be one of lossless, lossy, auto`; named.Error() != want {
		t.Errorf("%v, want %s", named, want)
	}
	if !errors.As(named, new(Problems)) {
		t.Error("the problems are lost")
	}
	if got := (Problems{{Reason: "too large"}}).In("a.yml").Error(); got != "a.yml: too large" {
		t.Error(got)
	}
	var many strings.Builder
	for i := range 25 {
		fmt.Fprintf(&many, "a%d: b\n", i)
	}
	_, err = Parse([]byte(many.String()))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 21 || lines[20] != "and 5 more" {
		t.Errorf("%v", err)
	}
}

// TestHostileFiles: what is made to blow a reader up is refused, or read, in no time. The test has no clock: it ends or
// does not.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += strings.NewReplacer("I", string(rune('0'+i)), "J", string(rune('1'+i))).
			Replace("aJ: &aJ [*aI,*aI,*aI,*aI,*aI,*aI,*aI,*aI,*aI]\n")
	}
	for what, text := range map[string]string{
		"aliases":     bomb + "pins: *a9\n",
		"itself":      "pins: &a [*a]\n",
		"lists":       strings.Repeat("[", MaxSize),
		"mappings":    strings.Repeat("{a: ", MaxSize/4),
		"indentation": strings.Repeat("- ", MaxSize/2),
		"keys":        strings.Repeat("? ", MaxSize/2),
		"anchors":     "pins: [" + strings.Repeat("&a x,", MaxSize/20) + "]",
		"merge":       "pins:\n- &a {match: {device: a}}\n- {<<: *a, rate: 1G}\n",
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := Parse([]byte(text)); err == nil || len(err.Error()) > 1<<14 {
				t.Errorf("%.500v", err)
			}
		})
	}
	parsed(t, strings.Repeat("#\n", MaxSize/2))
	many := parsed(t, "ignore: [match: {device: ["+strings.Repeat("a,", MaxSize/8)+"]}]")
	if many.Ignored(Subject{Device: "b"}) {
		t.Error("b is ignored")
	}
}

func TestExampleFile(t *testing.T) {
	b, err := os.ReadFile("../../packaging/rdma_exporter.yml")
	if err != nil {
		t.Fatal(err)
	}
	c := parsed(t, string(b))
	s := c.Settings(Subject{
		Hostname: "gpu-017", Device: "mlx5_3", BoardID: "MT_0000000838", LinkLayer: "InfiniBand", Port: 1,
	})
	want := Settings{
		Rate: ptr(200e9), Lanes: ptr(uint64(4)), Role: "compute", OFED: "25.10-*", Active: true,
		PKeys: []uint16{0x8001, 0x7fff},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	if !c.Ignored(Subject{Hostname: "gpu-1", Device: "mlx5_9"}) || len(c.Required("gpu-1")) != 4 {
		t.Error("ignores or required devices differ")
	}
	if got := c.Rack("gpu-017"); got != "r2" {
		t.Errorf("rack %q", got)
	}
}

func FuzzParse(f *testing.F) {
	if b, err := os.ReadFile("../../packaging/rdma_exporter.yml"); err == nil {
		f.Add(b)
	}
	f.Add([]byte(pinFile("rate: 2.5G")))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("cabling: [{match: {device: mlx5_0}, system: leaf-1, port_id: 7}]"))
	f.Add([]byte("peers: [{address: fe80::1, name: gpu-17 mlx5_3}, {address: lid:7, name: gpu-18}]"))
	f.Add([]byte("racks: [{match: {hostname: gpu-*}, rack: r1}, {match: {hostname: [gpu-1]}, rack: 2}]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if (c == nil) != (err != nil) {
			t.Fatalf("%v, %v", c, err)
		}
		var p Problems
		if err != nil && (!errors.As(err, &p) || len(p) == 0) {
			t.Fatalf("%v has no problems", err)
		}
		if err != nil {
			return
		}
		s, renamed := rail, rail
		renamed.Hostname = "host-1"
		reduced, err := OfHost(b, s.Hostname, renamed.Hostname, func(s string) string { return s })
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(reduced)
		if err != nil {
			t.Fatalf("%q: %v", reduced, err)
		}
		if !reflect.DeepEqual(again.Settings(renamed), c.Settings(s)) || again.Ignored(renamed) != c.Ignored(s) {
			t.Errorf("%q says something else", reduced)
		}
		if was, is := c.Cable(s), again.Cable(renamed); (was == nil) != (is == nil) ||
			was != nil && (was.System != is.System || was.PortID != is.PortID) {
			t.Errorf("%q: a cable ends at %+v, not %+v", reduced, is, was)
		}
		if was, is := c.Rack(s.Hostname), again.Rack(renamed.Hostname); (was == "") != (is == "") ||
			is != "" && is != rackPseudonym {
			t.Errorf("%q: the rack is %q, not %q", reduced, is, was)
		}
		for _, s := range c.Required("h") {
			if s.Device == "" && s.PCIAddress == "" {
				t.Errorf("%+v names nothing", s)
			}
		}
	})
}

// TestKeys: the reference has the keys that the parser takes.
func TestKeys(t *testing.T) {
	keysOf := func(keys []Key) (out []string) {
		for _, k := range keys {
			out = append(out, k.Name)
			if k.Values == "" || k.Default == "" || k.Meaning == "" {
				t.Errorf("%s: %+v", k.Name, k)
			}
		}
		slices.Sort(out)
		return out
	}
	for what, of := range map[string]struct {
		keys  []Key
		entry any
	}{
		"match": {MatchKeys, Match{}}, "pins": {PinKeys, Pin{}}, "cabling": {CablingKeys, Cable{}},
		"setup": {SetupKeys, Setup{}}, "switches": {SwitchKeys, Switch{}},
		"racks": {RackKeys, Rack{}}, "peers": {PeerKeys, Peer{}},
	} {
		t.Run(what, func(t *testing.T) {
			var taken []string
			for _, f := range reflect.VisibleFields(reflect.TypeOf(of.entry)) {
				if key := f.Tag.Get("yaml"); key != "match" {
					taken = append(taken, key)
				}
			}
			slices.Sort(taken)
			if got := keysOf(of.keys); !slices.Equal(got, taken) {
				t.Errorf("%q, the parser takes %q", got, taken)
			}
		})
	}
}
