package answer

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/linkmode"
)

// enums are the names of numbers. Others are written as numbers.
var enums = map[string]map[string]uint64{
	"dcb": { // selectors of the APP table
		"ethertype": dcb.SelectorEthertype, "stream": dcb.SelectorStream, "datagram": dcb.SelectorDatagram,
		"port": dcb.SelectorPort, "dscp": dcb.SelectorDSCP, "pcp": dcb.SelectorPCP,
	},
}

// table is the fields of a type by its form, those of nested structs included.
type table struct {
	fields   []*field          // in the order of the lines, alternatives with their first
	keys     map[string]*field // with this key; of lanes up to their number
	prefixed []*field          // maps and lists, the longest key first
	names    []*field          // parts of the name of an element
	value    *field            // of an element
	note     *field            // of an element
	open     bool              // lines of unknown keys are ignored
	lastly   bool              // lines are split at the last ": ": names may contain it, values do not
}

type field struct {
	key     string
	index   []int // path from the type of the table
	kind    kind
	elem    *table            // of a list
	options map[string]string // with "" for those without a value
	max     uint64
	mark    string   // key of its mark
	others  []*field // alternatives, itself included
}

type kind uint8

const (
	kindValue kind = iota // a number, a text, or words
	kindSet
	kindLanes
	kindEach
	kindMap
	kindList
	kindNote
	kindMark
)

func (f *field) has(option string) bool {
	_, ok := f.options[option]
	return ok
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	modesType    = reflect.TypeFor[linkmode.Set]()

	tables sync.Map // by reflect.Type
)

// tableOf returns the table of a struct, or of a list of structs.
func tableOf(t reflect.Type) *table {
	if known, ok := tables.Load(t); ok {
		return known.(*table)
	}
	made := &table{keys: map[string]*field{}}
	if t.Kind() == reflect.Slice {
		made.add(&field{kind: kindList, elem: tableOf(t.Elem())})
	} else {
		made.walk(t, "", nil)
	}
	slices.SortStableFunc(made.prefixed, func(a, b *field) int { return len(b.key) - len(a.key) })
	tables.Store(t, made)
	return made
}

func (t *table) walk(of reflect.Type, prefix string, index []int) {
	for _, sf := range RecordedFields(of) {
		options := strings.Split(sf.form, ",")
		f := &field{key: prefix + options[0], index: slices.Concat(index, sf.Index), options: map[string]string{}}
		for _, o := range options[1:] {
			name, value, _ := strings.Cut(o, "=")
			f.options[name] = value
		}
		t.open = t.open || f.has("open")
		f.max, _ = strconv.ParseUint(f.options["max"], 10, 64) // 0: that of the type
		f.mark, _, _ = strings.Cut(f.options["has"], " ")
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != timeType {
			t.walk(inner, f.key, f.index)
			continue
		}
		switch f.kind = f.kindOf(inner); f.kind {
		case kindList:
			f.elem = tableOf(inner.Elem())
		case kindLanes:
			f.key += lane
		}
		t.add(f)
	}
}

func (f *field) kindOf(t reflect.Type) kind {
	for option, k := range map[string]kind{"set": kindSet, "lanes": kindLanes, "each": kindEach, "note": kindNote} {
		if f.has(option) {
			return k
		}
	}
	switch {
	case t.Kind() == reflect.Map:
		return kindMap
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return kindList
	}
	return kindValue
}

func (t *table) add(f *field) {
	if f.has("name") {
		t.names = append(t.names, f)
		return
	}
	if f.mark != "" {
		t.keys[f.mark] = &field{kind: kindMark, index: f.index}
	}
	switch {
	case f.kind == kindNote:
		t.note = f
		return
	case f.kind == kindMap, f.kind == kindList && f.elem.names != nil:
		t.prefixed = append(t.prefixed, f)
		t.lastly = t.lastly || f.key == "" && f.kind == kindList && f.elem.value != nil
		if f.kind == kindList && f.elem.note != nil {
			t.keys[f.elem.note.key] = f.elem.note
		}
	case t.keys[f.key] != nil:
		first := t.keys[f.key]
		first.others = append(first.others, f)
		return
	default:
		f.others = []*field{f}
		t.keys[f.key] = f
		if f.has("value") {
			t.value = f
		}
	}
	t.fields = append(t.fields, f)
}

// counts reports whether a line is a counter.
func (t *table) counts(key string) bool {
	if f := t.keys[withoutLane(key)]; f != nil {
		return f.has("counter")
	}
	return slices.ContainsFunc(t.prefixed,
		func(f *field) bool { return f.has("counter") && strings.HasPrefix(key, f.key) })
}

// lane is between a key and the number of a lane.
const lane = "/lane"

func withoutLane(key string) string {
	if i := strings.Index(key, lane); i >= 0 {
		return key[:i+len(lane)]
	}
	return key
}

// fieldAt returns a field of a struct. It is not valid if a nested struct is nil and not allocated.
func fieldAt(v reflect.Value, index []int, allocate bool) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !allocate {
					return reflect.Value{}
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}
