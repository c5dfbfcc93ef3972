package answer

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/linkmode"
)

// Decode returns the reverse of Encode. An error names the entry, the line, the key and the reason, and nothing is
// returned with it.
func Decode[T any](path string, data []byte) (T, error) { return DecodeAt[T](path, data, time.Time{}) }

// DecodeAt returns the reverse of EncodeAt.
func DecodeAt[T any](path string, data []byte, start time.Time) (out T, err error) {
	v := reflect.ValueOf(&out).Elem()
	if err := (decoder{start}).lines(path, data, tableOf(v.Type()), v); err != nil {
		v.SetZero()
		return out, err
	}
	return out, nil
}

type decoder struct{ start time.Time }

func (d decoder) lines(path string, data []byte, t *table, v reflect.Value) error {
	for _, f := range t.prefixed { // the map, and the list of all lines, is never nil
		switch x := fieldAt(v, f.index, true); {
		case f.kind == kindMap && f.mark == "":
			x.Set(reflect.MakeMap(x.Type()))
		case f.index == nil:
			x.Set(reflect.MakeSlice(x.Type(), 0, 0))
		}
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		key, value, ok := t.split(line)
		if f := t.keys[line]; f != nil && f.has("bare") {
			key, value, ok = line, "true", true
		}
		if !ok {
			return garbled(path, n, line, errors.New("not KEY: VALUE"))
		}
		if err := d.set(t, v, key, value); err != nil {
			return garbled(path, n, key, err)
		}
	}
	return nil
}

// garbled quotes the beginning of a key, or of a line without one.
func garbled(path string, line int, key string, reason error) error {
	return &access.Error{
		Op: "parse", Path: path, Err: fmt.Errorf("%w: line %d: %.32q: %w", access.ErrMalformed, line, key, reason),
	}
}

func (t *table) split(line string) (key, value string, ok bool) {
	if t.lastly {
		return SplitLine(line)
	}
	if key, value, ok = strings.Cut(line, ": "); !ok {
		key, ok = strings.CutSuffix(line, ":")
	}
	return key, value, ok
}

var (
	errUnknown = errors.New("unknown key")
	errNoMark  = errors.New("the line that announces it is missing")
	errName    = errors.New("incomplete name")
)

func (d decoder) set(t *table, v reflect.Value, key, value string) error {
	if f := t.keys[withoutLane(key)]; f != nil {
		return d.field(f, v, value)
	}
	for _, f := range t.prefixed {
		inner, ok := strings.CutPrefix(key, f.key)
		if !ok {
			continue
		}
		x := fieldAt(v, f.index, true)
		if f.mark != "" && x.IsNil() {
			return errNoMark
		}
		if f.kind == kindMap {
			x.SetMapIndex(reflect.ValueOf(inner), reflect.ValueOf(value))
			return nil
		}
		return d.element(f, x, inner, value)
	}
	if t.open {
		return nil
	}
	return errUnknown
}

// field sets the field of a key, or one of its alternatives.
func (d decoder) field(f *field, v reflect.Value, value string) error {
	switch f.kind {
	case kindNote:
		return nil
	case kindMark:
		x := fieldAt(v, f.index, true)
		if x.Kind() == reflect.Map {
			x.Set(reflect.MakeMap(x.Type()))
		} else {
			x.Set(reflect.MakeSlice(x.Type(), 0, 0))
		}
		return nil
	case kindList:
		return d.element(f, fieldAt(v, f.index, true), "", value)
	case kindEach, kindLanes:
		return d.value(f, extended(fieldAt(v, f.index, true)), value)
	case kindSet:
		for word := range strings.FieldsSeq(value) {
			for _, a := range f.others {
				if a.options["set"] == word {
					fieldAt(v, a.index, true).SetBool(true)
				}
			}
		}
		return nil
	}
	var other *field
	done := false
	for _, a := range f.others {
		x := fieldAt(v, a.index, true)
		after, isAfter := a.options["after"]
		switch {
		case a.has("word"):
			is := value == a.options["word"]
			x.SetBool(is || a.has("any"))
			done = done || is
		case isAfter:
			if text, ok := strings.CutPrefix(value, after); ok {
				x.SetString(text)
				done = true
			}
		default:
			other = a
		}
	}
	switch {
	case done:
		return nil
	case other == nil:
		return notA("flag", value)
	}
	return d.value(other, fieldAt(v, other.index, true), value)
}

// extended appends an element to a list.
func extended(x reflect.Value) reflect.Value {
	n := x.Len()
	x.Grow(1)
	x.SetLen(n + 1)
	elem := x.Index(n)
	elem.SetZero()
	return elem
}

// element appends an element to a list, or the value of a lane to the last one.
func (d decoder) element(f *field, x reflect.Value, name, value string) error {
	if i := strings.Index(name, lane); i >= 0 && f.elem.keys[lane] != nil {
		if x.Len() == 0 {
			return errName
		}
		return d.set(f.elem, x.Index(x.Len()-1), name[i:], value)
	}
	if f.has("group") {
		for word := range strings.FieldsSeq(value) {
			if err := d.one(f, x, name, word); err != nil {
				return err
			}
		}
		return nil
	}
	return d.one(f, x, name, value)
}

func (d decoder) one(f *field, x reflect.Value, name, value string) error {
	v := extended(x)
	if err := d.name(f.elem, v, name); err != nil {
		return err
	}
	switch {
	case f.elem.value != nil:
		return d.field(f.elem.value, v, value)
	case f.has("columns"):
		return d.columns(f.elem, v, value)
	}
	for word := range strings.FieldsSeq(value) {
		key, value, _ := strings.Cut(word, "=")
		if err := d.set(f.elem, v, key, value); err != nil {
			return fmt.Errorf("%.32q: %w", key, err)
		}
	}
	return nil
}

// name sets the parts of the name of an element. An optional part is absent if no other follows, or if it is not a
// number.
func (d decoder) name(t *table, v reflect.Value, name string) error {
	ended := false
	for i, part := range t.names {
		x := fieldAt(v, part.index, true)
		none, optional := part.options["none"]
		optional = optional || x.Kind() == reflect.Pointer
		text, rest, more := name, "", false
		if i < len(t.names)-1 {
			text, rest, more = strings.Cut(name, t.names[i+1].key)
		}
		var err error
		if !ended {
			err = d.value(part, x, text)
		}
		switch {
		case optional && (ended || i < len(t.names)-1 && (!more || err != nil)):
			if x.SetZero(); none != "" {
				n, _ := strconv.Atoi(none)
				x.SetInt(int64(n))
			}
			continue
		case ended, text == "" && len(t.names) > 1:
			return errName
		case err != nil:
			return err
		}
		name, ended = rest, !more
	}
	return nil
}

// columns sets the fields of an element from values in their order.
func (d decoder) columns(t *table, v reflect.Value, value string) error {
	out := strings.SplitN(value, " ", len(t.fields))
	if len(out) < len(t.fields) {
		return fmt.Errorf("%d values, want %d", len(out), len(t.fields))
	}
	for i, f := range t.fields {
		if word := strings.TrimSpace(out[i]); word != "-" {
			if err := d.field(f, v, word); err != nil {
				return err
			}
		}
	}
	return nil
}

func notA(what, value string) error { return fmt.Errorf("%.32q is not a %s", value, what) }

// value parses a value.
func (d decoder) value(f *field, x reflect.Value, s string) error {
	switch x.Type() {
	case durationType:
		if f.has("micros") {
			n, err := strconv.ParseUint(s, 10, 53)
			x.SetInt(int64(time.Duration(n) * time.Microsecond))
			return orNot(err, "number of microseconds", s)
		}
		age, err := parseSeconds(s)
		x.SetInt(int64(age))
		return err
	case timeType:
		age, err := parseSeconds(s)
		x.Set(reflect.ValueOf(d.start.Add(-age)))
		return err
	case modesType:
		modes, ok := linkmode.Parse(s)
		if x.Set(reflect.ValueOf(modes)); !ok {
			return notA("list of link modes", s)
		}
		return nil
	}
	switch x.Kind() {
	case reflect.Pointer:
		p := reflect.New(x.Type().Elem())
		x.Set(p)
		return d.value(f, p.Elem(), s)
	case reflect.String:
		if f.has("escaped") {
			plain, err := Unescape(s)
			x.SetString(plain)
			return err
		}
		x.SetString(s)
		return nil
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		x.SetBool(b)
		return orNot(err, "truth value", s)
	case reflect.Float64:
		n, err := strconv.ParseFloat(s, 64)
		x.SetFloat(n)
		return orNot(err, "number", s)
	case reflect.Int: // no negative number is recorded
		n, err := parseNumber(f, s, 31)
		x.SetInt(int64(n))
		return err
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		n, err := parseNumber(f, s, x.Type().Bits())
		x.SetUint(n)
		return err
	case reflect.Slice, reflect.Array:
		return d.words(f, x, strings.Fields(s))
	}
	return access.ErrMalformed
}

func (d decoder) words(f *field, x reflect.Value, out []string) error {
	want := f.options["len"]
	if x.Kind() == reflect.Array {
		want = strconv.Itoa(x.Len())
	} else {
		x.Set(reflect.MakeSlice(x.Type(), len(out), len(out)))
	}
	if want != "" && want != strconv.Itoa(len(out)) {
		return fmt.Errorf("%d values, want %s", len(out), want)
	}
	for i, word := range out {
		if err := d.value(f, x.Index(i), word); err != nil {
			return err
		}
	}
	return nil
}

// parseNumber parses the name of a number, or a number without sign.
func parseNumber(f *field, s string, bits int) (uint64, error) {
	if n, ok := enums[f.options["enum"]][s]; ok {
		return n, nil
	}
	base := 10
	if f.has("hex") {
		base = 0
	}
	n, err := strconv.ParseUint(s, base, bits)
	if err == nil && f.max > 0 && n > f.max {
		return n, fmt.Errorf("%d exceeds %d", n, f.max)
	}
	return n, orNot(err, "number", s)
}

func orNot(err error, what, value string) error {
	if err != nil {
		return notA(what, value)
	}
	return nil
}

func parseSeconds(s string) (time.Duration, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > -1e9 && n < 1e9) {
		return 0, notA("number of seconds", s)
	}
	return time.Duration(n * float64(time.Second)).Round(time.Millisecond), nil
}
