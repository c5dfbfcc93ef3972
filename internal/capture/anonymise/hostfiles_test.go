package anonymise

import (
	"strings"
	"testing"
)

func TestIsPlainElement(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a": true, "mlx5_0:1~2+3%4,5-6.7": true, "straße٣": true, "a b": false, "a/b": false, "a\x00": false,
		"\xff": false, strings.Repeat("é", 63): true, strings.Repeat("é", 64): false,
	} {
		if got := isPlainElement(s); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
}
