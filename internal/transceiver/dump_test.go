package transceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// dump is a module in testdata, put together by hand from the tables of the standards. A line "[A0 lower]", "[A0 page 11 bank 1]"
// begins 128 bytes, which are 0 but for lines "OFFSET: bytes": in hex, as "text", or sum(FIRST-LAST) for a checksum. After "[want]"
// comes what Decode makes of it.
type dump struct {
	halves map[block]*[half]byte
	want   string
}

func load(t testing.TB, name string) dump {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, want, _ := strings.Cut(string(b), "[want]\n")
	d := dump{halves: map[block]*[half]byte{}, want: want}
	var to *[half]byte
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			to = &[half]byte{}
			d.halves[blockOf(t, line)] = to
		default:
			offset, bytes, ok := strings.Cut(line, ": ")
			at, err := strconv.Atoi(offset)
			if !ok || err != nil {
				t.Fatalf("%s: %q", name, line)
			}
			fill(t, to, at%half, bytes)
		}
	}
	return d
}

func blockOf(t testing.TB, line string) (b block) {
	t.Helper()
	f := strings.Fields(strings.Trim(line, "[]"))
	b.address = map[string]uint8{"A0": AddressA0, "A2": AddressA2}[f[0]]
	if f[1] == "page" {
		page, err := strconv.ParseUint(f[2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		b.page, b.upper = uint8(page), true
	}
	if len(f) > 4 {
		bank, err := strconv.ParseUint(f[4], 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		b.bank = uint8(bank)
	}
	return b
}

func fill(t testing.TB, to *[half]byte, at int, bytes string) {
	t.Helper()
	for bytes = strings.TrimSpace(bytes); bytes != ""; bytes = strings.TrimSpace(bytes) {
		var first, last int
		if bytes[0] == '"' {
			s, rest, _ := strings.Cut(bytes[1:], `"`)
			at += copy(to[at:], s)
			bytes = rest
			continue
		}
		token, rest, _ := strings.Cut(bytes, " ")
		bytes = rest
		if n, _ := fmt.Sscanf(token, "sum(%d-%d)", &first, &last); n == 2 {
			for _, b := range to[first%half : last%half+1] {
				to[at] += b
			}
			at++
			continue
		}
		b, err := strconv.ParseUint(token, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		to[at] = byte(b)
		at++
	}
}

// answer is what the module answers to a request; nothing where it has no such page.
func (d dump) answer(r Ref) []byte {
	h := d.halves[r.block()]
	if h == nil {
		return nil
	}
	from := int(r.Offset) % half
	return h[from : from+int(r.Length)]
}

// latched are the bytes that reading clears.
var latched = map[Layout][]Ref{
	SFF8636: {lower(3).run(19)},
	CMIS:    {lower(8).run(6), upper(0, 0x11, 134).run(20), upper(1, 0x11, 134).run(20)},
}

// read reads the module as a caller does, and holds the plan to its promises. It also counts the bytes that are read each time.
func (d dump) read(t testing.TB) (p *Pages, each int) {
	t.Helper()
	p = &Pages{}
	ask := func(refs []Ref) {
		for _, r := range refs {
			if !r.Valid() {
				t.Fatalf("the kernel refuses %+v", r)
			}
			id, _ := p.byteAt(lower(0))
			for _, l := range latched[layoutOf(id)] {
				if l.block() == r.block() && r.Offset < l.Offset+l.Length && l.Offset < r.Offset+r.Length {
					t.Fatalf("%+v has latched flags", r)
				}
			}
			p.Put(r, d.answer(r))
		}
	}
	for range 8 {
		static, monitors := Plan(p)
		if len(static) == 0 {
			ask(monitors)
			for _, r := range monitors {
				each += int(r.Length)
			}
			return p, each
		}
		ask(static)
	}
	t.Fatal("the plan does not end")
	return nil, 0
}

// describe writes what is known of a value, a line each.
func describe(b *strings.Builder, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			describe(b, name, v.Elem())
		}
	case reflect.Float64:
		fmt.Fprintf(b, "%s: %.5g\n", name, v.Float())
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && (v.Field(i).Kind() == reflect.Pointer || !v.Field(i).IsZero()) {
				describe(b, strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Index(0).Kind() == reflect.Struct {
			for i := range v.Len() {
				var one strings.Builder
				describe(&one, "", v.Index(i))
				fmt.Fprintf(b, "%s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(one.String()), "\n", ", "))
			}
			return
		}
		fmt.Fprintf(b, "%s: %v\n", name, v)
	default:
		fmt.Fprintf(b, "%s: %v\n", name, v)
	}
}

func written(m Module) string {
	var b strings.Builder
	describe(&b, "", reflect.ValueOf(m))
	return b.String()
}

func names(t testing.TB) (out []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(f), ".txt"))
	}
	return out
}

func TestModules(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			d := load(t, name)
			p, each := d.read(t)
			m := Decode(p)
			if got := written(m); got != d.want {
				t.Errorf("got\n%s\nwant\n%s", got, d.want)
			}
			if each > 200 {
				t.Errorf("%d bytes are read each time", each)
			}
			if each > 0 && !m.DOM {
				t.Error("there are monitors to read and none in the module")
			}
		})
	}
}
