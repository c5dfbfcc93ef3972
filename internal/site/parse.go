package site

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/setup"
)

// MaxSize limits a file.
const MaxSize = 1 << 20

// Parse reads a file. An invalid one returns all its Problems and no Config.
func Parse(b []byte) (*Config, error) {
	if len(b) > MaxSize {
		return nil, Problems{{Reason: fmt.Sprintf("file larger than %d MiB, check that it is the right one", MaxSize>>20)}}
	}
	if p := notText(b); p != nil {
		return nil, p
	}
	root, err := document(b)
	if err != nil {
		return nil, problemsOf(b, err)
	}
	p, c := &parser{}, &Config{}
	if root != nil {
		p.mapping(root, "the file", map[string]func(*yaml.Node){
			"pins": func(n *yaml.Node) { p.sequence(n, "pins", func(n *yaml.Node) { c.Pins = append(c.Pins, p.pin(n)) }) },
			"ignore": func(n *yaml.Node) {
				p.sequence(n, "ignore", func(n *yaml.Node) { c.Ignore = append(c.Ignore, p.ignore(n)) })
			},
			"cabling": func(n *yaml.Node) {
				p.sequence(n, "cabling", func(n *yaml.Node) { c.Cabling = append(c.Cabling, p.cable(n)) })
			},
			"setup": func(n *yaml.Node) {
				p.sequence(n, "setup", func(n *yaml.Node) { c.Setup = append(c.Setup, p.setup(n)) })
			},
			switches: func(n *yaml.Node) {
				p.sequence(n, switches, func(n *yaml.Node) { c.Switches = append(c.Switches, p.oneSwitch(n)) })
			},
		})
	}
	if len(p.problems) > 0 {
		return nil, p.problems.sorted()
	}
	return c, nil
}

var errSecondDocument = errors.New("more than one YAML document: remove the line ---")

// document is the tree of the only document of a file; nil if there is none. Aliases are not followed.
func document(b []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&second); err == nil {
		return nil, Problems{{Line: second.Line, Reason: errSecondDocument.Error()}}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// notText finds bytes that are invalid in YAML. The library reports their position in bytes, if at all.
func notText(b []byte) (out Problems) {
	line := 0
	for text := range bytes.Lines(b) {
		line++
		if !utf8.Valid(text) {
			out = append(out, Problem{line, "not UTF-8 text, check that it is the right file"})
		} else if i := bytes.IndexFunc(text, isControl); i >= 0 {
			r, _ := utf8.DecodeRune(text[i:])
			out = append(out, Problem{line, fmt.Sprintf("control character %U not allowed", r)})
		}
	}
	return out
}

// isControl reports whether YAML excludes a character: control characters but tab, line ends and NEL (YAML 1.2, c-printable).
func isControl(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r) || r == 0xfffe || r == 0xffff
}

// parserError matches the errors of the library with lines from 0. Others have lines from 1, and none for line 1.
var parserError = regexp.MustCompile("^did not find expected (<|node content|key|'-'|',')|^found (duplicate|incompatible|undefined) ")

// problemsOf extracts the line of an error of the YAML library.
func problemsOf(b []byte, err error) Problems {
	var known Problems
	if errors.As(err, &known) {
		return known
	}
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, reason, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			text, line = reason, n
		}
	}
	if line == 0 || parserError.MatchString(text) {
		line = min(line+1, max(1, bytes.Count(b, []byte("\n"))))
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok { // reported without a line
		name, _, _ := strings.Cut(rest, "'")
		line = bytes.Count(b[:max(0, bytes.Index(b, []byte("*"+name)))], []byte("\n")) + 1
	}
	return Problems{{line, "invalid YAML: " + text}}
}

// parser walks the tree and collects problems.
type parser struct {
	problems Problems
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, Problem{n.Line, fmt.Sprintf(format, args...)})
}

// is reports whether a node is of a kind, and adds a problem if not.
func (p *parser) is(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	if n.Kind == yaml.AliasNode {
		p.fail(n, "%s: alias *%s not supported: write the value", what, n.Value)
		return false
	}
	if n.Kind != kind {
		p.fail(n, "%s: must be %s", what, want)
		return false
	}
	return true
}

// mapping reads the keys of a mapping.
func (p *parser) mapping(n *yaml.Node, what string, keys map[string]func(*yaml.Node)) {
	if !p.is(n, yaml.MappingNode, what, "a mapping with the keys "+strings.Join(slices.Sorted(maps.Keys(keys)), ", ")) {
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := keys[key.Value]
		if key.Kind != yaml.ScalarNode || read == nil {
			p.fail(key, "%s: unknown key %q, known keys: %s", what, clip(key.Value), strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
			continue
		}
		if line, twice := seen[key.Value]; twice {
			p.fail(key, "%s: duplicate key %s, first in line %d", what, key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		read(value)
	}
}

// sequence reads the elements of a list.
func (p *parser) sequence(n *yaml.Node, what string, each func(*yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" { // a key whose entries are all commented out
		return
	}
	if p.is(n, yaml.SequenceNode, what, "a list") {
		for _, e := range n.Content {
			each(e)
		}
	}
}

// pinKeys read the keys of a pin.
func (p *parser) pinKeys(pin *Pin) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"match": func(n *yaml.Node) { pin.Match = p.match(n) },
		"rate":  func(n *yaml.Node) { pin.Rate = p.rate(n) },
		"lanes": func(n *yaml.Node) {
			if v, ok := p.integer(n, "lanes", 1, maxLanes); ok {
				pin.Lanes = &v
			}
		},
		"role":           func(n *yaml.Node) { pin.Role = p.oneOf(n, "role", "compute", "other", "nvlink_management") },
		"active":         func(n *yaml.Node) { pin.Active = p.boolean(n, "active") },
		"subnet_manager": func(n *yaml.Node) { pin.SubnetManager = p.boolean(n, "subnet_manager") },
		"present":        func(n *yaml.Node) { pin.Present = p.boolean(n, "present") },
		"roce":           func(n *yaml.Node) { pin.RoCE = p.oneOf(n, "roce", "lossless", "lossy", "auto") },
		"congestion_control": func(n *yaml.Node) {
			pin.CongestionControl = p.oneOf(n, "congestion_control", "dcqcn", "zerotouch_rtt", "off")
		},
		"ofed":  func(n *yaml.Node) { pin.OFED = p.glob(n, "ofed") },
		"pkeys": func(n *yaml.Node) { pin.PKeys = p.pkeys(n) },
	}
}

func (p *parser) pin(n *yaml.Node) (pin Pin) {
	before := len(p.problems)
	p.mapping(n, "pin", p.pinKeys(&pin))
	if len(p.problems) > before {
		return pin // further problems would be misleading
	}
	if p.needMatch(n, pin.Match, "pin") && len(n.Content) == 2 {
		p.fail(n, "pin: no expectation: add rate, active or another key besides match")
	}
	if pin.Match.GPU != nil {
		p.fail(n, "gpu: not supported in pins, only in ignore")
	}
	if given := pin.Match.given(); pin.OFED != "" && !slices.Equal(given, []string{"hostname"}) && len(given) > 0 {
		p.fail(n, "ofed: applies to the host: use a separate pin whose match has only hostname")
	}
	if pin.Present != nil && *pin.Present {
		p.exact(n, &pin.Match)
	}
	return pin
}

func (p *parser) ignore(n *yaml.Node) (i Ignore) {
	before := len(p.problems)
	p.mapping(n, "ignore", map[string]func(*yaml.Node){"match": func(n *yaml.Node) { i.Match = p.match(n) }})
	if len(p.problems) == before {
		p.needMatch(n, i.Match, "ignore")
		p.gpuAlone(n, &i.Match)
	}
	return i
}

// cablingKeys read the keys of an entry of cabling.
func (p *parser) cablingKeys(c *Cable) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"match":   func(n *yaml.Node) { c.Match = p.match(n) },
		"system":  func(n *yaml.Node) { c.System, _ = p.text(n, "system") },
		"port_id": func(n *yaml.Node) { c.PortID, _ = p.text(n, "port_id") },
	}
}

// cable reads an entry of cabling.
func (p *parser) cable(n *yaml.Node) (c Cable) {
	before := len(p.problems)
	p.mapping(n, "cabling", p.cablingKeys(&c))
	if len(p.problems) > before || !p.needMatch(n, c.Match, "cabling") {
		return c
	}
	if c.System == "" {
		p.fail(n, "cabling: system missing: add the name of the switch, and port_id")
	}
	if c.Match.GPU != nil {
		p.fail(n, "gpu: not supported in cabling: match the NIC by device")
	}
	return c
}

// setupKeys read the keys of an entry of setup.
func (p *parser) setupKeys(s *Setup) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"match": func(n *yaml.Node) { s.Match = p.match(n) },
		"want": func(n *yaml.Node) {
			s.Want = map[string]string{}
			keys := map[string]func(*yaml.Node){}
			for _, c := range setup.Checks {
				keys[c.ID] = func(n *yaml.Node) { s.Want[c.ID], _ = p.text(n, c.ID) }
			}
			p.mapping(n, "want", keys)
		},
	}
}

// setup reads an entry of setup.
func (p *parser) setup(n *yaml.Node) (s Setup) {
	before := len(p.problems)
	p.mapping(n, "setup", p.setupKeys(&s))
	if len(p.problems) > before || !p.needMatch(n, s.Match, "setup") {
		return s
	}
	if len(s.Want) == 0 {
		p.fail(n, "setup: want missing: add a setting and its value, such as max_read_request: 4096 (docs/setup.md)")
	}
	if s.Match.GPU != nil {
		p.fail(n, "gpu: not supported in setup, only in ignore")
	}
	return s
}

// switches is the key of the expected state of switches, which are of no host.
const switches = "switches"

// maxUplinks exceeds the ports of any switch.
const maxUplinks = 1024

// switchKeys read the keys of an entry of switches.
func (p *parser) switchKeys(s *Switch) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"switch":  func(n *yaml.Node) { s.Switch = p.globs(n, "switch") },
		"uplinks": func(n *yaml.Node) { s.Uplinks, _ = p.integer(n, "uplinks", 1, maxUplinks) },
	}
}

// oneSwitch reads an entry of switches.
func (p *parser) oneSwitch(n *yaml.Node) (s Switch) {
	before := len(p.problems)
	p.mapping(n, "switches", p.switchKeys(&s))
	switch {
	case len(p.problems) > before:
	case s.Switch == nil:
		p.fail(n, `switches: switch missing: add the node description or the GUID of the switch, or a glob`)
	case s.Uplinks == 0:
		p.fail(n, "switches: uplinks missing: add the number of its links to other switches")
	}
	return s
}

// gpuAlone rejects keys that do not apply to GPUs.
func (p *parser) gpuAlone(n *yaml.Node, m *Match) {
	for _, key := range m.given() {
		if m.GPU != nil && !slices.Contains([]string{"gpu", "hostname", "pci_address"}, key) {
			p.fail(n, "gpu: cannot be combined with %s, only with hostname and pci_address: use separate entries", key)
			return
		}
	}
}

func (p *parser) needMatch(n *yaml.Node, m Match, what string) bool {
	if len(m.given()) > 0 {
		return true
	}
	p.fail(n, `%s: match is empty: to match every port, set device: "*"`, what)
	return false
}

// exact rejects a match that does not name a device: a missing device has no other facts.
func (p *parser) exact(n *yaml.Node, m *Match) {
	for _, key := range m.given() {
		if !slices.Contains([]string{"device", "hostname", "pci_address"}, key) {
			p.fail(n, "present: cannot be combined with %s, which a missing device does not have: match device or pci_address (and hostname)", key)
			return
		}
	}
	if slices.ContainsFunc(slices.Concat(m.Device, m.PCIAddress), isGlob) || len(m.Device)+len(m.PCIAddress) == 0 {
		p.fail(n, "present: match must name the device: set device or pci_address without a glob")
	} else if len(m.Device) > 0 && len(m.PCIAddress) > 0 && len(m.Device)+len(m.PCIAddress) > 2 {
		p.fail(n, "present: device and pci_address together must name one device: use a pin for each device")
	}
}

func (p *parser) match(n *yaml.Node) (m Match) {
	keys := map[string]func(*yaml.Node){}
	for name, to := range m.keys() {
		keys[name] = func(n *yaml.Node) { *to = p.globs(n, name) }
	}
	p.mapping(n, "match", keys)
	return m
}

// globs reads a glob or a list of them.
func (p *parser) globs(n *yaml.Node, key string) Globs {
	if n.Kind != yaml.SequenceNode {
		return Globs{p.glob(n, key)}
	}
	if len(n.Content) == 0 {
		p.fail(n, "%s: empty list matches nothing: remove the key or add a glob", key)
	}
	var out Globs
	for _, e := range n.Content {
		out = append(out, p.glob(e, key))
	}
	return out
}

var pciAddress = regexp.MustCompile(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)

// exactValues are the valid texts without wildcards, by key.
var exactValues = map[string]struct {
	ok   func(string) bool
	want string
}{
	"pci_address": {pciAddress.MatchString, `a PCI address such as "0000:18:00.0", or a glob such as "*:18:00.?"`},
	"port":        {func(s string) bool { n, err := strconv.ParseUint(s, 10, 31); return err == nil && n > 0 }, "a port number from 1"},
	"link_layer":  {func(s string) bool { s = strings.ToLower(s); return s == "infiniband" || s == "ethernet" }, "InfiniBand or Ethernet"},
}

func (p *parser) glob(n *yaml.Node, key string) string {
	s, ok := p.text(n, key)
	switch {
	case !ok:
		return ""
	case !valid(s):
		p.fail(n, `%s: %q: invalid glob: unmatched [ or trailing \`, key, clip(s))
	case exactValues[key].ok != nil && !isGlob(s) && !exactValues[key].ok(unquote(s)):
		p.fail(n, "%s: %q: must be %s", key, clip(s), exactValues[key].want)
	}
	return s
}

// text reads strings and integers. YAML may convert other unquoted texts.
func (p *parser) text(n *yaml.Node, key string) (string, bool) {
	if !p.is(n, yaml.ScalarNode, key, "a string") {
		return "", false
	}
	if n.Value == "" || n.ShortTag() == "!!null" {
		p.fail(n, "%s: empty: remove the key or set a value", key)
		return "", false
	}
	if tag := n.ShortTag(); tag != "!!str" && tag != "!!int" {
		p.fail(n, "%s: YAML reads %q as %s: quote it", key, clip(n.Value), strings.TrimLeft(tag, "!"))
		return "", false
	}
	return n.Value, true
}

func (p *parser) oneOf(n *yaml.Node, key string, values ...string) string {
	s := n.Value // off is a string to this library, a boolean to others: a string here
	if n.Kind != yaml.ScalarNode || !slices.Contains(values, s) {
		if p.is(n, yaml.ScalarNode, key, "one of "+strings.Join(values, ", ")) {
			p.fail(n, "%s: %q: must be one of %s", key, clip(s), strings.Join(values, ", "))
		}
	}
	return s
}

func (p *parser) boolean(n *yaml.Node, key string) *bool {
	if !p.is(n, yaml.ScalarNode, key, "true or false") {
		return nil
	}
	if n.ShortTag() != "!!bool" {
		p.fail(n, "%s: %q: must be true or false", key, clip(n.Value))
		return nil
	}
	yes := strings.EqualFold(n.Value, "true")
	return &yes
}

// maxLanes is the maximum of Ethernet; that of InfiniBand is 12.
const maxLanes = 16

func (p *parser) integer(n *yaml.Node, key string, low, high uint64) (uint64, bool) {
	if !p.is(n, yaml.ScalarNode, key, "a number") {
		return 0, false
	}
	var v uint64
	if n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < low || v > high {
		p.fail(n, "%s: %q: must be an integer from %d to %d", key, clip(n.Value), low, high)
		return 0, false
	}
	return v, true
}

var rateForm = regexp.MustCompile(`^([0-9]{1,5}(?:\.[0-9]{1,3})?)G(?:b(?:/s)?)?$`)

func (p *parser) rate(n *yaml.Node) *float64 {
	if !p.is(n, yaml.ScalarNode, "rate", "a rate such as 400Gb/s") {
		return nil
	}
	m := rateForm.FindStringSubmatch(n.Value)
	if m == nil {
		if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
			p.fail(n, "rate: %q: unit missing: write %[1]sGb/s", clip(n.Value))
		} else {
			p.fail(n, "rate: %q: must be in gigabits per second: 400Gb/s, 400Gb or 400G", clip(n.Value))
		}
		return nil
	}
	g, err := strconv.ParseFloat(m[1], 64)
	if err != nil || g <= 0 {
		p.fail(n, "rate: %q: must be greater than 0: remove the key, or set active: false", clip(n.Value))
		return nil
	}
	bits := g * 1e9
	return &bits
}

func (p *parser) pkeys(n *yaml.Node) []uint16 {
	out := []uint16{}
	p.sequence(n, "pkeys", func(e *yaml.Node) {
		if v, ok := p.integer(e, "pkeys", 1, 0xffff); ok {
			out = append(out, uint16(v))
		}
	})
	return out
}

// clip shortens quoted text.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
