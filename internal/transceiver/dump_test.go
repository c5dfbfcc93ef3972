package transceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rdma_exporter/internal/transceiver/dump"
)

// module is a dump in testdata.
type module struct {
	halves map[block]*[half]byte
	want   string
}

func load(t testing.TB, name string) module {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	memory, want, err := dump.Parse(string(b))
	if err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	d := module{halves: map[block]*[half]byte{}, want: want}
	for h, bytes := range memory {
		d.halves[block{h.Address, h.Bank, h.Page, h.Upper}] = bytes
	}
	return d
}

// answer returns the module's answer to a request; empty if it lacks the page.
func (d module) answer(r Ref) []byte {
	h := d.halves[r.block()]
	if h == nil {
		return nil
	}
	from := int(r.Offset) % half
	return h[from : from+int(r.Length)]
}

// latched are the bytes that are cleared by reading.
var latched = map[Layout][]Ref{
	SFF8636: {lower(3).run(19)},
	CMIS:    {lower(8).run(6), upper(0, 0x11, 134).run(20), upper(1, 0x11, 134).run(20)},
}

// read reads the module as a caller does, and checks the invariants of the plan. It also counts the bytes of each
// reading.
func (d module) read(t testing.TB) (p *Pages, each int) {
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

// describe formats a value, one field per line.
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
