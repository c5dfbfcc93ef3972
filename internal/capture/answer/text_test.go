package answer

import (
	"strings"
	"testing"
	"testing/quick"
)

func TestEscape(t *testing.T) {
	check := func(p string) bool {
		e := Escape(p)
		got, err := Unescape(e)
		for _, c := range []byte(e) {
			if c < ' ' || c > '~' {
				return false
			}
		}
		return err == nil && got == p && !strings.Contains(e, " -> ") && !strings.Contains(e, " !") &&
			!strings.Contains(e, " @") &&
			!strings.HasPrefix(e, "+") && strings.TrimSpace(e) == e
	}
	if err := quick.Check(func(b []byte) bool { return check(string(b)) }, nil); err != nil {
		t.Error(err)
	}
	const awkward = " !@->+%a\n\x00\xff"
	if err := quick.Check(func(b []byte) bool {
		for i := range b {
			b[i] = awkward[int(b[i])%len(awkward)]
		}
		return check(string(b))
	}, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}
