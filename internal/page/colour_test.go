package page

import (
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`--([a-z_-]+): #([0-9a-f]{3,6});`)

// TestContrast: text has sufficient contrast in the light and in the dark theme (WCAG 2.2, 1.4.3: 4.5 to 1; 1.4.11: 3
// to 1 for shapes).
func TestContrast(t *testing.T) {
	css, err := fs.ReadFile(Static(), "page.css")
	if err != nil {
		t.Fatal(err)
	}
	bright, dark, ok := strings.Cut(string(css), "prefers-color-scheme: dark")
	if !ok {
		t.Fatal("no dark colours")
	}
	for name, part := range map[string]string{"light": bright, "dark": dark} {
		t.Run(name, func(t *testing.T) {
			colours := map[string]string{}
			for _, m := range variable.FindAllStringSubmatch(part, -1) {
				colours[m[1]] = m[2]
			}
			pairs := [][2]string{
				{"text", "back"},
				{"quiet", "card"},
				{"quiet", "back"},
				{"link", "card"},
				{"critical", "card"},
				{"warning", "card"},
				{"warning", "back"},
				{"ok", "card"},
			}
			for _, h := range healths {
				if back := string(h) + "-back"; colours[back] != "" {
					pairs = append(pairs, [2]string{string(h), back}, [2]string{"text", back}, [2]string{"quiet", back})
				}
			}
			for _, p := range pairs {
				if c := contrast(t, colours[p[0]], colours[p[1]]); c < 4.5 {
					t.Errorf("%s on %s: %.1f", p[0], p[1], c)
				}
			}
			for _, line := range []string{"a", "b", "inactive", "not_evaluated"} {
				if c := contrast(t, colours[line], colours["back"]); c < 3 {
					t.Errorf("%s: %.1f", line, c)
				}
			}
		})
	}
}

// contrast returns the contrast of two colours in hex.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance returns the relative luminance of a colour in hex, by WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = hex[:1] + hex[:1] + hex[1:2] + hex[1:2] + hex[2:] + hex[2:]
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatalf("colour %q: %v", hex, err)
	}
	out := 0.0
	for i, weight := range []float64{0.0722, 0.7152, 0.2126} { // blue, green, red
		c := float64(n>>(8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		out += weight * c
	}
	return out
}
