package values

import (
	"reflect"
	"testing"
)

func TestShell(t *testing.T) {
	for word, want := range map[string]string{
		"mlx5_0": "mlx5_0", "a b'$(x)": `'a b'\''$(x)'`, "x;y": "'x;y'", "": "",
	} {
		if got := Shell(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestMappings: only what is shown as a map is one.
func TestMappings(t *testing.T) {
	for text, want := range map[string][]int{
		"26:3": {26}, "26:3 24:3": {26, 24}, "": nil, "26": nil, "64:3": nil, "26:8": nil, "26:3x": nil, "-1:3": nil,
	} {
		if got, _, ok := Mappings(text); ok != (want != nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}

func TestPriorities(t *testing.T) {
	for text, want := range map[string][]int{"3": {3}, "3,4": {3, 4}, "none": nil} {
		if got, ok := Priorities(text); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "8", "3|4", "all", "-1"} {
		if got, ok := Priorities(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
