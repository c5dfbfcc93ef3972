//go:build soak

package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// figure is a resource that must not grow continuously.
type figure struct {
	name  string
	unit  float64 // unit of output
	bound float64 // allowed growth over the second half of a run
}

// sample is the figures at one time, in order.
type sample struct {
	at     time.Duration
	values []float64
}

// growth returns the growth of a figure over the second half of a run: the median of the slopes between each two
// samples (Theil-Sen estimator, robust against outliers) times the length.
func growth(samples []sample, i int) float64 {
	half := samples[len(samples)/2:]
	var slopes []float64
	for n, a := range half {
		for _, b := range half[n+1:] {
			slopes = append(slopes, (b.values[i]-a.values[i])/float64(b.at-a.at))
		}
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2] * float64(half[len(half)-1].at-half[0].at)
}

// fewest samples make a fit.
const fewest = 8

// check prints a row for each figure, and returns those that have grown.
func check(figures []figure, samples []sample) (table string, grown []string) {
	if len(samples) < fewest {
		return "", []string{fmt.Sprintf("%d samples are too few to tell: let it run longer", len(samples))}
	}
	var out strings.Builder
	fmt.Fprintln(&out,
		"| | first | in the middle | last | least | most | growth over the second half | bound |\n|---|---|---|---|---|---|---|---|")
	for i, f := range figures {
		var all []float64
		for _, s := range samples {
			all = append(all, s.values[i]/f.unit)
		}
		g := growth(samples, i) / f.unit
		fmt.Fprintf(&out, "| %s | %.5g | %.5g | %.5g | %.5g | %.5g | %+.3g | %g |\n",
			f.name, all[0], all[len(all)/2], all[len(all)-1], slices.Min(all), slices.Max(all), g, f.bound/f.unit)
		if g > f.bound/f.unit {
			grown = append(grown, fmt.Sprintf("%s has grown by %.3g over the second half, at most %g are right",
				f.name, g, f.bound/f.unit))
		}
	}
	return out.String(), grown
}

// TestCheck: a leak is found in fluctuating figures, and none without a leak.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		value func(i int) float64
		leaks bool
	}{
		{"constant", func(int) float64 { return 100 }, false},
		{"a saw", func(i int) float64 { return 100 + float64(i%6) }, false},
		{"it begins small", func(i int) float64 { return 100 - 80/float64(1+i) }, false},
		{"one out of line at the end", func(i int) float64 { return 100 + float64(i/47*50) }, false},
		{"it shrinks", func(i int) float64 { return 100 - float64(i) }, false},
		{"a leak", func(i int) float64 { return 100 + float64(i)/2 }, true},
		{"a leak below a saw", func(i int) float64 { return 100 + float64(i%6) + float64(i)/2 }, true},
		{"a leak that begins late", func(i int) float64 { return 100 + float64(max(0, i-24))/2 }, true},
	} {
		var samples []sample
		for i := range 48 {
			samples = append(samples, sample{time.Duration(i) * time.Minute, []float64{c.value(i)}})
		}
		if _, grown := check([]figure{{"it", 1, 5}}, samples); (len(grown) > 0) != c.leaks {
			t.Errorf("%s: %q", c.name, grown)
		}
	}
	if _, grown := check([]figure{{"it", 1, 5}}, make([]sample, fewest-1)); len(grown) == 0 {
		t.Error("a few samples are taken for a proof")
	}
}
