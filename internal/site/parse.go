package site

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/words"
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
	c := &Config{}
	if root == nil {
		return c, nil
	}
	var p Problems
	if p.values(root, "the file") {
		p.decode(b, c)
	}
	if p == nil {
		p.entries(root, c)
	}
	if p != nil {
		return nil, p.sorted()
	}
	return c, nil
}

var errSecondDocument = errors.New("more than one YAML document: remove the line ---")

// document returns the tree of the only document of a file; nil if there is none. Aliases are not followed.
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

// isControl reports whether YAML excludes a character: control characters but tab, line ends and NEL (YAML 1.2,
// c-printable).
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
	line, text := cutLine(strings.TrimPrefix(err.Error(), "yaml: "))
	if line == 0 || parserError.MatchString(text) {
		line = min(line+1, max(1, bytes.Count(b, []byte("\n"))))
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok { // reported without a line
		name, _, _ := strings.Cut(rest, "'")
		line = bytes.Count(b[:max(0, bytes.Index(b, []byte("*"+name)))], []byte("\n")) + 1
	}
	return Problems{{line, "invalid YAML: " + text}}
}

// cutLine splits an error of the library, "line 3: reason"; line 0 if it has none.
func cutLine(text string) (line int, reason string) {
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, reason, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			return n, reason
		}
	}
	return 0, text
}

// decode reads a file into c. It refuses unknown and duplicate keys.
func (p *Problems) decode(b []byte, c *Config) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	var wrong *yaml.TypeError
	err := d.Decode(c)
	if !errors.As(err, &wrong) {
		if err != nil {
			*p = append(*p, problemsOf(b, err)...)
		}
		return
	}
	for _, text := range wrong.Errors {
		line, reason := cutLine(text)
		if field := unknownField.FindStringSubmatch(reason); field != nil {
			reason = fmt.Sprintf("%s: unknown key %q, known keys: %s",
				mappings[field[2]].name, clip(field[1]), mappings[field[2]].keys)
		} else if kind := wrongKind.FindStringSubmatch(reason); kind != nil {
			if slices.ContainsFunc(*p, func(known Problem) bool { return known.Line == line }) {
				continue // the value is reported with its key
			}
			reason = mustBe(kind[1])
		}
		*p = append(*p, Problem{line, reason})
	}
}

// Errors of the library that name a Go type.
var (
	unknownField = regexp.MustCompile(`(?s)^field (.*) not found in type (\S+)$`)
	wrongKind    = regexp.MustCompile(`(?s)^cannot unmarshal .* into (\S+)$`)
)

// mappings of the file by their Go types.
var mappings = map[string]struct{ name, keys string }{
	"site.Config": {"the file", "cabling, ignore, peers, pins, racks, setup, switches"},
	"site.Pin":    {"pins", namesOf(PinKeys, "match")},
	"site.Ignore": {"ignore", "match"},
	"site.Cable":  {"cabling", namesOf(CablingKeys, "match")},
	"site.Setup":  {"setup", namesOf(SetupKeys, "match")},
	"site.Switch": {"switches", namesOf(SwitchKeys)},
	"site.Rack":   {"racks", namesOf(RackKeys, "match")},
	"site.Peer":   {"peers", namesOf(PeerKeys)},
	"site.Match":  {"match", namesOf(MatchKeys)},
}

// namesOf lists keys in the order of the alphabet.
func namesOf(keys []Key, more ...string) string {
	more = append(more, words.Map(keys, func(k Key) string { return k.Name })...)
	slices.Sort(more)
	return strings.Join(more, ", ")
}

// mustBe returns the kind of value that a Go type takes.
func mustBe(goType string) string {
	element, list := strings.CutPrefix(goType, "[]")
	switch m := mappings[element]; {
	case goType == "[]uint16":
		return "pkeys: must be a list"
	case list:
		return m.name + ": must be a list"
	case goType == "map[string]string":
		return "want: must be a mapping of settings to values"
	case m.keys != "":
		return m.name + ": must be a mapping with the keys " + m.keys
	default:
		return "must be a string"
	}
}

// maxKeys exceeds the keys of any mapping. The library compares each key with each.
const maxKeys = 200

// values checks the values of single keys below a node. It reports whether the library can decode the node.
func (p *Problems) values(n *yaml.Node, key string) bool {
	ok := true
	switch check := checkOf(key); n.Kind {
	case yaml.AliasNode:
		p.fail(n, "%s: alias *%s not supported: write the value", key, n.Value)
		return false
	case yaml.MappingNode:
		if check != nil {
			p.fail(n, "%s: must be a single value", key)
		}
		if len(n.Content) > 2*maxKeys {
			p.fail(n, "mapping with %d keys, check that it is the right file", len(n.Content)/2)
			return false
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.ShortTag() != "!!str" {
				p.fail(name, "unknown key %q: keys are names", clip(name.Value))
				ok = false
				continue
			}
			ok = p.values(n.Content[i+1], name.Value) && ok
		}
	case yaml.SequenceNode:
		if check != nil && !isGlobs(key) && key != "pkeys" {
			p.fail(n, "%s: must be a single value", key)
		}
		if len(n.Content) == 0 && isGlobs(key) {
			p.fail(n, "%s: empty list matches nothing: remove the key or add a glob", key)
		}
		for _, e := range n.Content {
			if isNull(e) {
				p.fail(e, "%s: empty entry: remove it or set a value", key)
				continue
			}
			if check != nil && e.Kind == yaml.SequenceNode {
				p.fail(e, "%s: list within a list: write all values in one list", key)
				continue
			}
			ok = p.values(e, key) && ok
		}
	default:
		if check != nil && !(key == "pkeys" && isNull(n)) {
			if reason := check(n); reason != "" {
				p.fail(n, "%s: %s", key, reason)
			}
		} else if isNull(n) && (key == "match" || key == "want") {
			p.fail(n, "%s: empty: remove the key or set a value", key)
		}
	}
	return ok
}

// isNull reports whether a node has no value, as a key whose entries are all commented out.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (p *Problems) fail(n *yaml.Node, format string, args ...any) {
	*p = append(*p, Problem{n.Line, fmt.Sprintf(format, args...)})
}

// isGlobs reports whether a key takes a glob or a list of them.
func isGlobs(key string) bool {
	return key == "switch" || slices.ContainsFunc(MatchKeys, func(k Key) bool { return k.Name == key })
}

// checkOf returns the function that checks a value of a key; nil if the key takes no single value. The function returns
// the error with its correction; empty if the value is valid.
func checkOf(key string) func(*yaml.Node) string {
	switch {
	case checks[key] != nil:
		return checks[key]
	case isGlobs(key):
		return wrongGlob
	case slices.ContainsFunc(setup.Checks, func(c setup.Check) bool { return c.ID == key }):
		return wrongText
	}
	return nil
}

var checks = map[string]func(*yaml.Node) string{
	"rate":               wrongRate,
	"lanes":              integer(1, 16), // 16: the maximum of Ethernet; that of InfiniBand is 12
	"role":               oneOf("compute", "other", "nvlink_management"),
	"active":             wrongBoolean,
	"subnet_manager":     wrongBoolean,
	"present":            wrongBoolean,
	"roce":               oneOf("lossless", "lossy", "auto"),
	"congestion_control": oneOf("dcqcn", "zerotouch_rtt", "off"),
	"ofed":               wrongGlob,
	"pkeys":              integer(1, 0xffff),
	"system":             wrongText,
	"port_id":            wrongText,
	"uplinks":            integer(1, 1024), // exceeds the ports of any switch
	"rack":               wrongLabel,
	"address":            wrongAddress,
	"name":               wrongLabel,

	"pci_address": exact(func(s string) bool { return pciAddress.MatchString(s) }, `a PCI address such as "0000:18:00.0", or a glob such as "*:18:00.?"`),
	"port":        exact(func(s string) bool { n, err := strconv.ParseUint(s, 10, 31); return err == nil && n > 0 }, "a port number from 1"),
	"link_layer":  exact(func(s string) bool { return slices.Contains([]string{"infiniband", "ethernet"}, strings.ToLower(s)) }, "InfiniBand or Ethernet"),
}

var pciAddress = regexp.MustCompile(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)

// wrongText accepts strings and integers. YAML may convert other unquoted texts.
func wrongText(n *yaml.Node) string {
	switch tag := n.ShortTag(); {
	case n.Value == "" || isNull(n):
		return "empty: remove the key or set a value"
	case tag != "!!str" && tag != "!!int":
		return fmt.Sprintf("YAML reads %q as %s: quote it", clip(n.Value), strings.TrimLeft(tag, "!"))
	}
	return ""
}

// maxLabel limits a text that is exported as it is, in bytes: the limit of labels, beyond which names become equal.
const maxLabel = 128

// wrongLabel accepts texts that the value of a label has unchanged.
func wrongLabel(n *yaml.Node) string {
	reason := wrongText(n)
	if v := n.Value; reason == "" && (len(v) > maxLabel || strings.TrimSpace(v) != v || words.Foreign(v) != v) {
		return fmt.Sprintf("%q: must be one line of at most %d bytes, without blanks at its ends and without control characters",
			clip(v), maxLabel)
	}
	return reason
}

// lid is the address of an InfiniBand peer without a GID.
var lid = regexp.MustCompile(`^lid:[0-9]{1,10}$`)

func wrongAddress(n *yaml.Node) string {
	reason := wrongText(n)
	if a, err := netip.ParseAddr(n.Value); reason == "" && (err != nil || a.Zone() != "") && !lid.MatchString(n.Value) {
		return fmt.Sprintf(`%q: must be an IP address, a GID or "lid:17"`, clip(n.Value))
	}
	return reason
}

func wrongGlob(n *yaml.Node) string {
	reason := wrongText(n)
	if reason == "" && !valid(n.Value) {
		return fmt.Sprintf("%q: invalid glob: unmatched [ or trailing \\", clip(n.Value))
	}
	return reason
}

// exact checks globs without wildcards.
func exact(ok func(string) bool, want string) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		reason := wrongGlob(n)
		if reason == "" && !isGlob(n.Value) && !ok(unquote(n.Value)) {
			return fmt.Sprintf("%q: must be %s", clip(n.Value), want)
		}
		return reason
	}
}

// oneOf takes values as they are written: off is a string to this library, a boolean to others.
func oneOf(values ...string) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		if slices.Contains(values, n.Value) {
			return ""
		}
		return fmt.Sprintf("%q: must be one of %s", clip(n.Value), strings.Join(values, ", "))
	}
}

func wrongBoolean(n *yaml.Node) string {
	if n.ShortTag() == "!!bool" {
		return ""
	}
	return fmt.Sprintf("%q: must be true or false", clip(n.Value))
}

func integer(low, high uint64) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		var v uint64
		if n.ShortTag() == "!!int" && n.Decode(&v) == nil && v >= low && v <= high {
			return ""
		}
		return fmt.Sprintf("%q: must be an integer from %d to %d", clip(n.Value), low, high)
	}
}

var rateForm = regexp.MustCompile(`^([0-9]{1,5}(?:\.[0-9]{1,3})?)G(?:b(?:/s)?)?$`)

// rateOf parses a rate in bits per second; 0 if the text is not a rate.
func rateOf(text string) float64 {
	m := rateForm.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	g, _ := strconv.ParseFloat(m[1], 64) // the form has digits only
	return g * 1e9
}

func wrongRate(n *yaml.Node) string {
	_, err := strconv.ParseFloat(n.Value, 64)
	switch {
	case rateOf(n.Value) > 0:
		return ""
	case rateForm.MatchString(n.Value):
		return fmt.Sprintf("%q: must be greater than 0: remove the key, or set active: false", clip(n.Value))
	case err == nil:
		return fmt.Sprintf("%q: unit missing: write %[1]sGb/s", clip(n.Value))
	default:
		return fmt.Sprintf("%q: must be in gigabits per second: 400Gb/s, 400Gb or 400G", clip(n.Value))
	}
}

// UnmarshalYAML reads a rate with its unit.
func (r *Rate) UnmarshalYAML(n *yaml.Node) error {
	*r = Rate(rateOf(n.Value))
	return nil
}

// UnmarshalYAML reads a glob or a list of them.
func (g *Globs) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*g = Globs{n.Value}
		return nil
	}
	return n.Decode((*[]string)(g))
}

// clip shortens quoted text.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
