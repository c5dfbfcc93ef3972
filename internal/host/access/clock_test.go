package access

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClocks: the time since boot is that of /proc/uptime, and a virtual clock moves all of them.
func TestClocks(t *testing.T) {
	wall, up, ran := NewClocks().Read()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	if d := seconds - up.Seconds(); d < -0.1 || d > 10 {
		t.Errorf("up for %s, in /proc/uptime %ss", up, first)
	}
	if ran > up+time.Second || time.Since(wall).Abs() > 10*time.Second {
		t.Errorf("%s, up for %s, ran for %s", wall, up, ran)
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewClocks()
		wall, up, ran := c.Read()
		time.Sleep(24 * time.Hour)
		wall2, up2, ran2 := c.Read()
		for name, d := range map[string]time.Duration{"wall": wall2.Sub(wall), "up": up2 - up, "ran": ran2 - ran} {
			if (d - 24*time.Hour).Abs() > 100*time.Millisecond {
				t.Errorf("%s: %s", name, d)
			}
		}
	})
}
