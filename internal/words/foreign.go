package words

import (
	"reflect"
	"strings"
	"sync"
	"unicode"
)

// maxForeign is the maximum length in bytes of a text from outside the program. A setting of a job, with its name, has
// up to 4 KiB.
const maxForeign = 4 << 10

// Foreign makes one text from outside the program safe to print: names of devices and processes, settings of jobs,
// texts of transceivers, neighbours and other programs. The result is one line of valid UTF-8, at most maxForeign
// bytes. Characters that are not graphic become Unprintable: line breaks, tabs, escapes, marks of text direction,
// invalid bytes. NULs at the end are padding and are dropped.
func Foreign(s string) string {
	if passes(s) {
		return s
	}
	s = strings.ToValidUTF8(strings.TrimRight(s, "\x00"), string(Unprintable))
	s = Replace(s, isNotGraphic, Unprintable)
	if len(s) > maxForeign {
		s = Cut(s, maxForeign-len("…")) + "…"
	}
	return s
}

// Unprintable replaces a character that is not shown. It is not U+FFFD: the PromQL lexer takes that for an invalid
// byte, so the alert texts of an object with U+FFFD in a label would fail.
const Unprintable = '\u25a1'

func isNotGraphic(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }

// passes reports whether Foreign leaves a text unchanged. Nearly all texts are printable ASCII.
func passes(s string) bool {
	if len(s) > maxForeign {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return !strings.ContainsFunc(s, isNotGraphic)
		}
	}
	return true
}

// AllForeign applies Foreign to all texts of a value, map keys included. A value whose texts all pass is returned
// unchanged. Otherwise the result is a copy that shares no texts with the value, since other goroutines may read it.
// Errors can still be unwrapped. Unexported fields, and fields with the tag `foreign:"parsed"` (only parsed, never
// shown), are not changed.
func AllForeign[T any](v T) T {
	x := reflect.ValueOf(&v).Elem()
	if s := shapeOf(x.Type()); s != nil && !s.passes(x) {
		x.Set(s.copyGated(x))
	}
	return v
}

// shape describes where the texts of a type are; nil for a type without texts.
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

// newShape returns the shape of a type. outer holds the types that contain it: a recursive type counts as having texts.
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

// passes reports whether Foreign leaves all texts of a value unchanged.
func (s *shape) passes(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return passes(v.String())
	case reflect.Interface:
		if err, ok := errorIn(v); ok {
			return passes(err.Error())
		}
		of := dynamicShape(v)
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

// foreignError is an error whose text passes through Foreign.
type foreignError struct{ error }

func (e foreignError) Error() string { return Foreign(e.error.Error()) }
func (e foreignError) Unwrap() error { return e.error }

// errorIn returns the error in a field of type error; false if there is none.
func errorIn(v reflect.Value) (err error, ok bool) {
	if v.Type() != errorType || v.IsNil() {
		return nil, false
	}
	return v.Interface().(error), true
}

// dynamicShape returns the shape of the value in an interface; nil if it has no texts.
func dynamicShape(v reflect.Value) *shape {
	if v.IsNil() {
		return nil
	}
	return shapeOf(v.Elem().Type())
}

// copyGated returns a copy of a value with Foreign applied to its texts.
func (s *shape) copyGated(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(Foreign(v.String()))
	case reflect.Interface:
		if err, ok := errorIn(v); ok {
			out.Set(reflect.ValueOf(foreignError{err}))
		} else if of := dynamicShape(v); of != nil {
			out.Set(of.copyGated(v.Elem()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(s.elem.copyGated(v.Elem()))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(s.elem.copyGated(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for i := v.MapRange(); i.Next(); {
			out.SetMapIndex(s.key.copyWith(i.Key()), s.elem.copyWith(i.Value()))
		}
	case reflect.Struct:
		for _, f := range s.fields {
			out.Field(f.index).Set(f.copyGated(v.Field(f.index)))
		}
	}
	return out
}

// copyWith returns copyGated(v), or v itself if it has no texts.
func (s *shape) copyWith(v reflect.Value) reflect.Value {
	if s == nil {
		return v
	}
	return s.copyGated(v)
}
