package words

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestForeign(t *testing.T) {
	for in, want := range map[string]string{
		"mlx5_0":                        "mlx5_0",
		"é 日本 (rev A)":                  "é 日本 (rev A)",
		"a\n  set: b\x1b[8m\a\tc\u0085": "a\u25a1  set: b\u25a1[8m\u25a1\u25a1c\u25a1",
		"\u202ea\u2066b\u200fc\u2028d":  "\u25a1a\u25a1b\u25a1c\u25a1d",
		"a\xff\xfeb\x7f":                "a\u25a1b\u25a1",
		"padded\x00\x00":                "padded",
		strings.Repeat("x", maxForeign): strings.Repeat("x", maxForeign),
		strings.Repeat("日", maxForeign): strings.Repeat("日", maxForeign/3-1) + "…",
	} {
		if got := Foreign(in); got != want {
			t.Errorf("%.40q: %.40q, want %.40q", in, got, want)
		}
	}
}

type picture struct {
	Name   string
	Number int
	List   []*picture
	Env    map[string]string
	Any    any
	Err    error
	File   string `foreign:"parsed"`
	hidden string
}

func TestAllForeign(t *testing.T) {
	cause := errors.New("bad\nname")
	given := &picture{
		Name: "a\n", Number: 1, List: []*picture{nil, {Name: "\x1b"}}, Env: map[string]string{"k\a": "v\u202e"},
		Any: []any{"x\t", 2}, Err: cause, File: "one\ntwo", hidden: "\n",
	}
	got := AllForeign(given)
	if got.Err.Error() != "bad\u25a1name" || !errors.Is(got.Err, cause) {
		t.Errorf("error %q", got.Err)
	}
	got.Err = nil
	want := &picture{
		Name: "a\u25a1", Number: 1, List: []*picture{nil, {Name: "\u25a1"}}, Env: map[string]string{"k\u25a1": "v\u25a1"},
		Any: []any{"x\u25a1", 2}, File: "one\ntwo", hidden: "\n",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if given.Name != "a\n" || given.List[1].Name != "\x1b" || given.Env["k\a"] == "" {
		t.Errorf("the value of others was changed: %+v", given)
	}
	if same := AllForeign(want); same != want {
		t.Error("a value that passes was copied")
	}
}
