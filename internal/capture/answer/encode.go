package answer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdma_exporter/internal/linkmode"
	"rdma_exporter/internal/words"
)

// Encode writes an answer by the form of its type.
func Encode(v any) []byte { return EncodeAt(v, time.Time{}) }

// EncodeAt writes times as ages at start.
func EncodeAt(v any, start time.Time) []byte {
	var b bytes.Buffer
	t := tableOf(reflect.TypeOf(v))
	encoder{start}.table(t, reflect.ValueOf(v), func(key, value string) {
		line := oneLine(key + ": " + value)
		switch f := t.keys[key]; {
		case f == nil:
		case f.has("bare"):
			line = key
		case f.kind == kindSet:
			line = strings.TrimSuffix(line, " ")
		}
		b.WriteString(line + "\n")
	})
	return b.Bytes()
}

type encoder struct{ start time.Time }

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

func (e encoder) table(t *table, v reflect.Value, emit func(key, value string)) {
	for _, f := range t.fields {
		x := fieldAt(v, f.index, false)
		if !x.IsValid() {
			continue
		}
		if f.mark != "" && !x.IsNil() {
			_, text, _ := strings.Cut(f.options["has"], " ")
			emit(f.mark, cmp.Or(text, strconv.Itoa(x.Len())))
		}
		switch f.kind {
		case kindValue:
			if text, ok := e.first(f, v); ok {
				emit(f.key, text)
			}
		case kindSet:
			emit(f.key, setText(f, v))
		case kindLanes:
			for i := range x.Len() {
				emit(f.key+strconv.Itoa(i), strconv.FormatUint(x.Index(i).Uint(), 10))
			}
		case kindEach:
			for i := range x.Len() {
				emit(f.key, escape(x.Index(i).String()))
			}
		case kindMap:
			m := x.Interface().(map[string]string)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				if m[key] != "" {
					emit(f.key+escape(key), escape(m[key]))
				}
			}
		case kindList:
			e.list(f, x, emit)
		}
	}
}

// first returns the value of the first alternative that has one.
func (e encoder) first(f *field, v reflect.Value) (string, bool) {
	for _, a := range f.others {
		x := fieldAt(v, a.index, false)
		if a.has("omitempty") && (x.IsZero() || x.Kind() == reflect.Slice && x.Len() == 0) {
			continue
		}
		if text, ok := e.value(a, x); ok {
			return text, true
		}
	}
	return "", false
}

func setText(f *field, v reflect.Value) string {
	var out []string
	for _, a := range f.others {
		if fieldAt(v, a.index, false).Bool() {
			out = append(out, a.options["set"])
		}
	}
	return strings.Join(out, " ")
}

func (e encoder) list(f *field, x reflect.Value, emit func(key, value string)) {
	before := ""
	var grouped []string
	for i := range x.Len() {
		elem := x.Index(i)
		key := f.key + e.name(f.elem, elem)
		switch {
		case f.has("group"):
			if i > 0 && key != before {
				emit(before, strings.Join(grouped, " "))
				grouped = nil
			}
			text, _ := e.first(f.elem.value, elem)
			before, grouped = key, append(grouped, text)
		case f.elem.value != nil:
			text, _ := e.first(f.elem.value, elem)
			emit(key, text)
			e.table(f.elem, elem, func(inner, value string) {
				if inner != "" {
					emit(key+inner, value)
				}
			})
		default:
			emit(key, e.record(f, elem))
			if note := f.elem.note; note != nil {
				if text, ok := e.value(note, fieldAt(elem, note.index, false)); ok {
					emit(note.key, text)
				}
			}
		}
	}
	if len(grouped) > 0 {
		emit(before, strings.Join(grouped, " "))
	}
}

// name returns the name of an element.
func (e encoder) name(t *table, v reflect.Value) string {
	var b strings.Builder
	for _, part := range t.names {
		x := fieldAt(v, part.index, false)
		text, ok := e.value(part, x)
		if none, can := part.options["none"]; can && text == none || !ok && x.Kind() == reflect.Pointer {
			continue
		}
		b.WriteString(part.key + text)
	}
	return b.String()
}

// record returns the values of an element in one line. Blanks in a value become "_".
func (e encoder) record(f *field, v reflect.Value) string {
	var out []string
	if f.has("columns") {
		for _, c := range f.elem.fields {
			text, _ := e.first(c, v)
			out = append(out, cmp.Or(text, "-"))
		}
		return strings.Join(out, " ")
	}
	e.table(f.elem, v, func(key, value string) { out = append(out, key+"="+strings.ReplaceAll(value, " ", "_")) })
	return strings.Join(out, " ")
}

// value returns the text of a value; false if it is absent.
func (e encoder) value(f *field, x reflect.Value) (string, bool) {
	if x.Kind() == reflect.Pointer {
		if x.IsNil() {
			return "", false
		}
		x = x.Elem()
	}
	switch x.Type() {
	case durationType:
		if f.has("micros") {
			return strconv.FormatInt(time.Duration(x.Int()).Microseconds(), 10), true
		}
		return seconds(time.Duration(x.Int())), true
	case timeType:
		return seconds(e.start.Sub(x.Interface().(time.Time))), true
	case modesType:
		return x.Interface().(linkmode.Set).String(), !x.IsNil()
	}
	switch x.Kind() {
	case reflect.String:
		return stringText(f, x.String())
	case reflect.Bool:
		if word := f.options["word"]; word != "" {
			return word, x.Bool()
		}
		return strconv.FormatBool(x.Bool()), x.Bool() || !f.has("bare")
	case reflect.Float64:
		return strconv.FormatFloat(x.Float(), 'f', -1, 64), true
	case reflect.Int:
		return strconv.Itoa(int(x.Int())), true
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		return numberText(f, x.Uint()), true
	case reflect.Slice, reflect.Array:
		var out []string
		for i := range x.Len() {
			word, _ := e.value(f, x.Index(i))
			out = append(out, word)
		}
		return strings.Join(out, " "), x.Kind() == reflect.Array || !x.IsNil()
	}
	panic(fmt.Sprintf("capture: a field of type %s cannot be recorded", x.Type()))
}

func stringText(f *field, s string) (string, bool) {
	if f.has("escaped") {
		return strings.ReplaceAll(Escape(s), ": ", ":%20"), s != ""
	}
	if before, ok := f.options["after"]; ok {
		return before + escape(s), true
	}
	return escape(s), s != ""
}

func numberText(f *field, n uint64) string {
	for name, m := range enums[f.options["enum"]] {
		if m == n {
			return name
		}
	}
	if f.has("hex") {
		return fmt.Sprintf("%#x", n)
	}
	return strconv.FormatUint(n, 10)
}

// seconds returns a duration in milliseconds.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64)
}

// escape replaces what a terminal would interpret, which a job may have put into its names and settings.
func escape(s string) string {
	return words.Replace(s, func(r rune) bool { return !unicode.IsGraphic(r) }, ' ')
}
