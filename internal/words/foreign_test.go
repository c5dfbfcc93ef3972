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
		"a\n  set: b\x1b[8m\a\tc\u0085": "a\ufffd  set: b\ufffd[8m\ufffd\ufffdc\ufffd",
		"\u202ea\u2066b\u200fc\u2028d":  "\ufffda\ufffdb\ufffdc\ufffdd",
		"a\xff\xfeb\x7f":                "a\ufffdb\ufffd",
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
	if got.Err.Error() != "bad\ufffdname" || !errors.Is(got.Err, cause) {
		t.Errorf("error %q", got.Err)
	}
	got.Err = nil
	want := &picture{
		Name: "a\ufffd", Number: 1, List: []*picture{nil, {Name: "\ufffd"}}, Env: map[string]string{"k\ufffd": "v\ufffd"},
		Any: []any{"x\ufffd", 2}, File: "one\ntwo", hidden: "\n",
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
