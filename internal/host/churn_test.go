package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// churn reads four files of one directory in every way while the directory is removed and created, and reports wrong
// results.
func churn(l *Live, n int, wrong func(format string, args ...any)) {
	names := []string{"0", "1", "2", "3"}
	check := func(name string, b []byte, err error) {
		if err == nil && len(b) > 0 && !strings.HasPrefix(string(b), name+":") {
			wrong("%s: %q", name, b)
		}
	}
	var buf []byte
	for i := range n {
		if _, err := l.Files.List("sys/d"); err != nil && !IsAbsent(err) {
			wrong("List: %v", err)
		}
		buf = l.Files.ReadEach("sys/d", names, buf, check)
		name := names[i%len(names)]
		b, err := l.Files.Read("sys/d/"+name, buf)
		check(name, b, err)
	}
}

func TestManyReadersWhileADeviceComesAndGoes(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, l *Live) {
		open := descriptors(t, dir)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { churn(l, 200, t.Errorf) })
		}
		wg.Go(func() {
			for round := range 100 {
				next := fmt.Sprintf("next%d", round)
				for i := range 4 {
					put(t, dir, fmt.Sprintf("%s/%d", next, i), fmt.Sprintf("%d:%d", i, round))
				}
				if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
					t.Error(err)
				}
				if err := os.Rename(filepath.Join(dir, next), filepath.Join(dir, "sys/d")); err != nil {
					t.Error(err)
				}
				l.Forget()
			}
		})
		wg.Wait()
		list(t, l.Files, "sys/d")
		if got := content(t, l.Files, "sys/d/2"); got != "2:99" {
			t.Errorf("at the end: %q", got)
		}
		if n := descriptors(t, dir) - open; n > 4 || n != l.tree.kept {
			t.Errorf("%d descriptors are open, %d are counted, of 4 files", n, l.tree.kept)
		}
	})
}

// A read that the kernel has held beyond Close neither keeps a descriptor nor reads another tree.
func TestCloseWhileReading(t *testing.T) {
	bothWays(t, func(t *testing.T, dir string, _ *Live) {
		for i := range 4 {
			put(t, dir, fmt.Sprintf("sys/d/%d", i), fmt.Sprintf("%d:", i))
		}
		open0 := descriptors(t, dir)
		for range 20 {
			l := open(t, dir)
			started := make(chan struct{})
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					churn(l, 1, t.Errorf)
					started <- struct{}{}
					churn(l, 20, func(string, ...any) {})
				})
			}
			for range 3 {
				<-started
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if n := descriptors(t, dir); n != open0 {
				t.Fatalf("%d descriptors are left", n-open0)
			}
		}
	})
}
