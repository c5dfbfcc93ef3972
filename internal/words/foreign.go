package words

import (
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// maxForeign limits a text from outside the program, in bytes. A setting of a job has up to 4 KiB with its name.
const maxForeign = 4 << 10

// Foreign gates one text from outside the program: names of devices and processes, settings of jobs,
// what modules, neighbours and other programs say of themselves. The result is one line of valid UTF-8, at most
// maxForeign bytes. What is not graphic becomes Unprintable: line breaks, tabs, escapes, marks of text direction,
// invalid bytes. NULs at the end are padding and are dropped.
func Foreign(s string) string {
	if passes(s) {
		return s
	}
	s = strings.ToValidUTF8(strings.TrimRight(s, "\x00"), string(Unprintable))
	s = Replace(s, notGraphic, Unprintable)
	if len(s) > maxForeign {
		s = Cut(s, maxForeign-len("…")) + "…"
	}
	return s
}

// Unprintable stands for a character that is not shown. It is not U+FFFD, which no query of PromQL may have: the lexer
// takes it for an invalid byte, and a label with it would make the texts of alerts on its object fail.
const Unprintable = '\u25a1'

func notGraphic(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }

// passes reports whether the gate leaves a text as it is. Nearly all are printable ASCII.
func passes(s string) bool {
	if len(s) > maxForeign {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return !strings.ContainsFunc(s, notGraphic)
		}
	}
	return true
}

// AllForeign gates all texts of a value, keys of maps included. A value whose texts pass is returned as
// it is. Otherwise the result shares nothing that has texts with the value, which others may be reading. Errors keep
// what they wrap. Unexported fields, and fields with the tag `foreign:"parsed"` (never shown, only parsed), are left as
// they are.
func AllForeign[T any](v T) T {
	x := reflect.ValueOf(&v).Elem()
	if s := shapeOf(x.Type()); s != nil && !s.passes(x) {
		x.Set(s.gated(x))
	}
	return v
}

// shape is where a type has texts. A type without texts has none.
type shape struct {
	fields    []part // of a struct
	key, elem *shape // of a pointer, list or map
}

type part struct {
	index int
	*shape
}

var (
	shapes    sync.Map // by reflect.Type
	errorType = reflect.TypeFor[error]()
)

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := newShape(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

// newShape returns the shape of a type. outer has the types around it: one that contains itself has texts.
func newShape(t reflect.Type, outer map[reflect.Type]*shape) *shape {
	if s := outer[t]; s != nil {
		return s
	}
	s := &shape{}
	outer[t] = s
	defer delete(outer, t)
	switch t.Kind() {
	case reflect.String, reflect.Interface:
		return s
	case reflect.Pointer, reflect.Slice, reflect.Array:
		if s.elem = newShape(t.Elem(), outer); s.elem != nil {
			return s
		}
	case reflect.Map:
		s.key, s.elem = newShape(t.Key(), outer), newShape(t.Elem(), outer)
		if s.key != nil || s.elem != nil {
			return s
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() || f.Tag.Get("foreign") == "parsed" {
				continue
			}
			if of := newShape(f.Type, outer); of != nil {
				s.fields = append(s.fields, part{i, of})
			}
		}
		if s.fields != nil {
			return s
		}
	}
	return nil
}

// passes reports whether all texts of a value pass.
func (s *shape) passes(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return passes(v.String())
	case reflect.Interface:
		if err, ok := errorIn(v); ok {
			return passes(err.Error())
		}
		of := dynamic(v)
		return of == nil || of.passes(v.Elem())
	case reflect.Pointer:
		return v.IsNil() || s.elem.passes(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !s.elem.passes(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if s.key != nil && !s.key.passes(i.Key()) || s.elem != nil && !s.elem.passes(i.Value()) {
				return false
			}
		}
	case reflect.Struct:
		for _, f := range s.fields {
			if !f.passes(v.Field(f.index)) {
				return false
			}
		}
	}
	return true
}

// foreignError is an error whose text passes.
type foreignError struct{ error }

func (e foreignError) Error() string { return Foreign(e.error.Error()) }
func (e foreignError) Unwrap() error { return e.error }

// errorIn returns the error that a field of type error holds.
func errorIn(v reflect.Value) (err error, ok bool) {
	if v.Type() != errorType || v.IsNil() {
		return nil, false
	}
	return v.Interface().(error), true
}

// dynamic returns the shape of the value in an interface; nil if it has no texts.
func dynamic(v reflect.Value) *shape {
	if v.IsNil() {
		return nil
	}
	return shapeOf(v.Elem().Type())
}

// gated returns a copy of a value whose texts pass.
func (s *shape) gated(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(Foreign(v.String()))
	case reflect.Interface:
		if err, ok := errorIn(v); ok {
			out.Set(reflect.ValueOf(foreignError{err}))
		} else if of := dynamic(v); of != nil {
			out.Set(of.gated(v.Elem()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(s.elem.gated(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(s.elem.gated(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for i := v.MapRange(); i.Next(); {
			out.SetMapIndex(s.key.copied(i.Key()), s.elem.copied(i.Value()))
		}
	case reflect.Struct:
		for _, f := range s.fields {
			out.Field(f.index).Set(f.gated(v.Field(f.index)))
		}
	}
	return out
}

// copied returns gate(v), or v itself if it has no texts.
func (s *shape) copied(v reflect.Value) reflect.Value {
	if s == nil {
		return v
	}
	return s.gated(v)
}
