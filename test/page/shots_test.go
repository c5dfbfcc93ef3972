//go:build e2e

package page

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var shots = flag.String("shots", "", "folder to write the screenshots of the README to")

// maxShot is how large a screenshot in the tree may be.
const maxShot = 150 << 10

// TestScreenshots takes those of the README, and writes them if it is told where.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine, scheme string
		width, height   int
		phone           bool
	}{
		"page.png":       {"demo", "light", 1280, 1130, false},
		"page-phone.png": {"downshift-one", "dark", 390, 1130, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := browse(t)
			b.size(c.width, c.height, c.phone)
			b.scheme(c.scheme)
			b.open(serve(t, c.machine))
			picture := small(t, b.shot(c.width, c.height))
			if len(picture) > maxShot {
				t.Errorf("%d bytes", len(picture))
			}
			if *shots != "" {
				must(t, os.WriteFile(filepath.Join(*shots, name), picture, 0o644))
			}
		})
	}
}

// small writes a picture with the 256 colours that it has most of.
func small(t *testing.T, b []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(b))
	must(t, err)
	area := full.Bounds()
	seen := map[color.Color]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			seen[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(seen), func(a, b color.Color) int { return cmp.Compare(seen[b], seen[a]) })
	palette := color.Palette(colours[:min(len(colours), 256)])
	nearest := map[color.Color]uint8{}
	for _, c := range colours {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[full.At(x, y)])
		}
	}
	var w bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out))
	return w.Bytes()
}
