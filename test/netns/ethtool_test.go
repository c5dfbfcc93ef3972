//go:build e2e

package netns

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
)

const (
	readings = 10_000
	readers  = 50
)

// ethtoolHost uses the kernel of this namespace.
func ethtoolHost(t *testing.T) *live.Live {
	t.Helper()
	root := tree(t, "lo")
	opened, err := live.Open(rooted.Paths{RootFS: root, Sys: filepath.Join(root, "sysfs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// deep calls f further down the stack of the goroutine.
func deep(n int, f func()) {
	var frame [128]byte
	if n > 0 {
		deep(n-1, f)
	} else {
		f()
	}
	runtime.KeepAlive(&frame)
}

// eachFresh calls f on new goroutines, each at a different stack depth.
func eachFresh(f func()) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, readers)
	for i := range readings {
		slots <- struct{}{}
		wg.Go(func() {
			deep(i%97, f)
			<-slots
		})
		if i%500 == 0 {
			runtime.GC() // which shrinks stacks
		}
	}
	wg.Wait()
}

// TestNetdevStats: 10,000 readings from goroutines with growing stacks are all complete and correct.
func TestNetdevStats(t *testing.T) {
	l := newLink(t, "veth-es")
	opened := ethtoolHost(t)
	peer := uint64(l.peer.Attrs().Index)
	whole, err := opened.Ethtool.NetdevStats(context.Background(), "veth-es")
	if err != nil || len(whole) == 0 {
		t.Fatal(whole, err)
	}
	var mu sync.Mutex
	bad := 0
	right := func(got []host.Stat) bool {
		if len(got) != len(whole) {
			return false
		}
		for i, s := range got {
			if s.Name != whole[i].Name || s.Name == "peer_ifindex" && s.Value != peer {
				return false
			}
		}
		return true
	}
	eachFresh(func() {
		got, err := opened.Ethtool.NetdevStats(context.Background(), "veth-es")
		mu.Lock()
		defer mu.Unlock()
		if err != nil || !right(got) {
			if bad++; bad < 4 {
				t.Errorf("%v, %v", got, err)
			}
		}
	})
	if bad > 0 {
		t.Errorf("%d of %d readings are wrong", bad, readings)
	}
}

// TestNetdevStatsOfOthers: netdevs without statistics, and no netdev.
func TestNetdevStatsOfOthers(t *testing.T) {
	opened := ethtoolHost(t)
	if got, err := opened.Ethtool.NetdevStats(context.Background(), "lo"); access.ReasonOf(err) != access.Unsupported {
		t.Errorf("lo: %v, %v", got, err)
	}
	if got, err := opened.Ethtool.NetdevStats(context.Background(), "none0"); access.ReasonOf(err) != access.Gone {
		t.Errorf("none0: %v, %v", got, err)
	}
	newLink(t, "veth-eo")
	if _, err := opened.Ethtool.Pause(context.Background(), "veth-eo"); access.ReasonOf(err) != access.Unsupported {
		t.Errorf("pause of a veth: %v", err)
	}
	// The kernel accepts the request and has no statistics of a veth; a malformed request would be EINVAL.
	if got, err := opened.Ethtool.StandardStats(context.Background(), "veth-eo"); access.ReasonOf(
		err,
	) != access.Unsupported {
		t.Errorf("standard statistics of a veth: %v, %v", got, err)
	}
	if _, err := opened.Ethtool.FEC(context.Background(), "veth-eo"); access.ReasonOf(err) != access.Unsupported {
		t.Errorf("FEC of a veth: %v", err)
	}
}
