//go:build !race

package main

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestMarked(t *testing.T) {
	docs := fstest.MapFS{
		"a.md": {Data: []byte("Before.\n<!-- gen:x -->\nold\n<!-- end -->\nAfter.\n")},
		"b.md": {Data: []byte("<!-- gen:x -->\nno end\n")},
	}
	write := func(text string, err error) map[string]func() (string, error) {
		return map[string]func() (string, error){"x": func() (string, error) { return text, err }}
	}
	p, err := marked(docs, "a.md", write("new\n\n", nil))
	if want := "Before.\n<!-- gen:x -->\nnew\n<!-- end -->\nAfter.\n"; err != nil || string(p.text) != want {
		t.Errorf("%v\n%s", err, p.text)
	}
	for name, parts := range map[string]map[string]func() (string, error){
		"b.md": write("new", nil), "c.md": write("new", nil), "a.md": write("", errors.New("broken")),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := marked(docs, name, parts); err == nil {
				t.Error("no error")
			}
		})
	}
}
