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

	"rdma_exporter/test/browser"
)

var shots = flag.String("shots", "", "folder to write the screenshots of the README to")

// maxShot is the size limit of a screenshot in the repository.
const maxShot = 150 << 10

// TestScreenshots takes those of the README, and writes them if a directory is set.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine, scheme string
		width, height   int
		phone           bool
	}{
		"page.png":       {"demo", "light", 1280, 1560, false},
		"page-phone.png": {"downshift-one", "dark", 390, 1200, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := browser.Start(t)
			b.Size(c.width, c.height, c.phone)
			b.Scheme(c.scheme)
			b.Open(serve(t, c.machine))
			picture := small(t, b.Shot())
			if len(picture) > maxShot {
				t.Errorf("%d bytes", len(picture))
			}
			if *shots != "" {
				must(t, os.WriteFile(filepath.Join(*shots, name), picture, 0o644))
			}
		})
	}
}

// small encodes a picture with 256 colours: similar ones are replaced by the most frequent one.
func small(t *testing.T, b []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(b))
	must(t, err)
	area := full.Bounds()
	seen := map[color.NRGBA]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			seen[pixel(full, x, y)]++
		}
	}
	byCount := slices.SortedFunc(maps.Keys(seen), func(a, b color.NRGBA) int { return cmp.Compare(seen[b], seen[a]) })
	var palette color.Palette
	for near := 0; ; near = 2*near + 1 {
		palette = palette[:0]
		for _, c := range byCount {
			if !slices.ContainsFunc(palette, func(p color.Color) bool { return distance(p.(color.NRGBA), c) <= near }) {
				palette = append(palette, c)
			}
			if len(palette) > 256 {
				break
			}
		}
		if len(palette) <= 256 {
			break
		}
	}
	out := image.NewPaletted(area, palette)
	nearest := map[color.NRGBA]uint8{}
	for c := range seen {
		nearest[c] = uint8(palette.Index(c))
	}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[pixel(full, x, y)])
		}
	}
	var w bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out))
	return w.Bytes()
}

// distance returns the squared distance.
func distance(a, b color.NRGBA) int {
	d := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
	return d(a.R, b.R) + d(a.G, b.G) + d(a.B, b.B)
}

func pixel(m image.Image, x, y int) color.NRGBA {
	return color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
}
