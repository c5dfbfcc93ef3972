package rooted_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// churn reads four files of one directory in every way while the directory is removed and created, and reports wrong
// results.
func churn(l *rooted.Tree, n int, wrong func(format string, args ...any)) {
	names := []string{"0", "1", "2", "3"}
	check := func(name string, b []byte, err error) {
		if err == nil && len(b) > 0 && !strings.HasPrefix(string(b), name+":") {
			wrong("%s: %q", name, b)
		}
	}
	var buf []byte
	for i := range n {
		if _, err := l.List("sys/d"); err != nil && !access.IsAbsent(err) {
			wrong("List: %v", err)
		}
		buf = l.ReadEach("sys/d", names, buf, check)
		name := names[i%len(names)]
		b, err := l.Read("sys/d/"+name, buf)
		check(name, b, err)
	}
}

func TestManyReadersWhileADeviceComesAndGoes(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, l *rooted.Tree) {
		open := hosttest.Descriptors(t, dir)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { churn(l, 200, t.Errorf) })
		}
		wg.Go(func() {
			for round := range 100 {
				next := fmt.Sprintf("next%d", round)
				for i := range 4 {
					hosttest.Put(t, dir, fmt.Sprintf("%s/%d", next, i), fmt.Sprintf("%d:%d", i, round))
				}
				if err := os.RemoveAll(filepath.Join(dir, "sys/d")); err != nil {
					t.Error(err)
				}
				if err := os.Rename(filepath.Join(dir, next), filepath.Join(dir, "sys/d")); err != nil {
					t.Error(err)
				}
				l.ForgetAll()
			}
		})
		wg.Wait()
		hosttest.List(t, l, "sys/d")
		if got := hosttest.Content(t, l, "sys/d/2"); got != "2:99" {
			t.Errorf("at the end: %q", got)
		}
		if n := hosttest.Descriptors(t, dir) - open; n > 4 || n != l.Kept() {
			t.Errorf("%d descriptors are open, %d are counted, of 4 files", n, l.Kept())
		}
	})
}

// A read that the kernel has held beyond Close neither keeps a descriptor nor reads another tree.
func TestCloseWhileReading(t *testing.T) {
	hosttest.BothWays(t, func(t *testing.T, dir string, _ *rooted.Tree) {
		for i := range 4 {
			hosttest.Put(t, dir, fmt.Sprintf("sys/d/%d", i), fmt.Sprintf("%d:", i))
		}
		open0 := hosttest.Descriptors(t, dir)
		for range 20 {
			l := hosttest.Open(t, dir)
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
			if n := hosttest.Descriptors(t, dir); n != open0 {
				t.Fatalf("%d descriptors are left", n-open0)
			}
		}
	})
}
