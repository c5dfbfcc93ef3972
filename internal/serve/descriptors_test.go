package serve

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/test/alone"
)

// TestExhausted: a process without free descriptors for a minute exits with the reason, but not if some become free
// earlier.
func TestExhausted(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = 3 // all in use
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- awaitExhaustion(ctx) }()
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
		time.Sleep(exhaustedTime - time.Second)
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		time.Sleep(2 * exhaustedTime)
		select {
		case err := <-ended:
			t.Fatalf("ended: %v", err)
		default:
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
		began := time.Now()
		err := awaitExhaustion(t.Context())
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "RLIMIT_NOFILE") ||
			took > exhaustedTime+exhaustedProbe {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestCheckDescriptors: the limit of open files has to be sufficient for connections and everything else.
func TestCheckDescriptors(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = 300
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	for _, tt := range []struct {
		most int
		want string
	}{{44, ""}, {45, "limit of open files (RLIMIT_NOFILE) is 300, need 301 for --web.max-connections=45 and 256 files"}} {
		err := (&Web{maxConnections: tt.most}).CheckDescriptors()
		if got := errorText(err); (err == nil) != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d connections: %s", tt.most, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
