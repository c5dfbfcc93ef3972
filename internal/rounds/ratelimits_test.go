package rounds_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/test/machines"
)

// replayed returns the host of a fixture on the clock of the test; change may alter its rounds first.
func replayed(t *testing.T, name string, change func(*capture.Archive)) *host.Host {
	t.Helper()
	a := machines.Load(t, name)
	a.Rounds = a.Rounds[:1]
	if change != nil {
		change(a)
	}
	p, err := replay.Play(a, time.Now())
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	h := p.Host()
	h.Now, h.Budget = time.Now, access.NewBudget(time.Now)
	return h
}

func scheduleOf(t *testing.T, h *host.Host, log *slog.Logger) *rounds.Scheduler {
	return rounds.New(context.WithoutCancel(t.Context()),
		rounds.Options{Host: h, Collectors: collector.All(collector.Options{}), Timeout: 10 * time.Second, Logger: log})
}

// hanging is the file access of a machine on which the files of one device's port hang while closed is not nil.
type hanging struct {
	host.Files
	prefix string
	closed atomic.Pointer[chan struct{}]
}

func (f *hanging) hang() (release func()) {
	c := make(chan struct{})
	f.closed.Store(&c)
	return func() {
		f.closed.Store(nil)
		close(c)
	}
}

func (f *hanging) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if c := f.closed.Load(); c != nil && strings.HasPrefix(dir, f.prefix) {
		<-*c
	}
	return f.Files.ReadIn(dir, name, buf)
}

// TestLastStateIsServed: the last state of a device that does not answer is served for ten minutes, without its
// counters.
func TestLastStateIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replayed(t, "dgx-h100-ib", nil)
		files := &hanging{Files: h.Files, prefix: "sys/class/infiniband/mlx5_0/ports/1"}
		h.Files = files
		s := scheduleOf(t, h, nil)
		whole := machines.Collect(t, s)
		start := time.Now()
		age := `rdma_device_data_age_seconds{device="mlx5_0"}`
		descs := map[string]*collector.Desc{}
		for _, d := range collector.All(collector.Options{})[0].Descs {
			descs[d.Name] = d
		}
		for key, v := range whole {
			if strings.HasPrefix(key, "rdma_device_data_age_seconds") && v != "0" {
				t.Errorf("%s is %s", key, v)
			}
		}
		release := files.hang()
		for time.Since(start) < 12*time.Minute {
			time.Sleep(15 * time.Second)
			old := time.Since(start)
			got := machines.Collect(t, s)
			if v := got[age]; v == "" || v == "0" {
				t.Fatalf("after %s: age %q", old, v)
			}
			if got[`rdma_port_state_id{device="mlx5_3",port="1"}`] != "4" ||
				got[`rdma_device_data_age_seconds{device="mlx5_3"}`] != "0" {
				t.Errorf("after %s: another device is lost", old)
			}
			for key := range whole {
				name, _, _ := strings.Cut(key, "{")
				d := descs[name]
				if d == nil || !strings.Contains(key, `device="mlx5_0"`) || key == age {
					continue
				}
				counts := d.Type == exposition.Counter || name == "rdma_port_counter_saturated"
				if _, served := got[key]; served != (!counts && old <= 10*time.Minute) {
					t.Errorf("after %s: %s is served: %v", old, key, served)
				}
			}
		}
		release()
		synctest.Wait()
		if got := machines.Collect(t, s); got[age] != "0" || len(machines.Lost(whole, got)) != 0 {
			t.Errorf("afterwards: age %q, lost %v", got[age], machines.Lost(whole, got))
		}
	})
}

// slowPort delays the answer for one device by half a minute, once it is enabled.
type slowPort struct {
	host.RDMA
	device string
	slow   atomic.Bool
}

func (p *slowPort) Port(ctx context.Context, device string, port int) (host.RDMAPort, error) {
	if device == p.device && p.slow.Load() {
		time.Sleep(30 * time.Second)
	}
	return p.RDMA.Port(ctx, device, port)
}

// TestRTNLClosed: reading the state of a bnxt_re port takes rtnl. While rtnl is held, and for a minute after, no such
// request is made; data that needs no rtnl is in every scrape.
func TestRTNLClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replayed(t, "bnxt-thor2", nil)
		rdma := &slowPort{RDMA: h.RDMA, device: "bnxt_re1"}
		h.RDMA = rdma
		s := scheduleOf(t, h, nil)
		whole := machines.Collect(t, s)
		const (
			requests = `rdma_scrape_source_requests_total{lock="rtnl",source="port_state"}`
			age      = `rdma_device_data_age_seconds{device="bnxt_re0"}`
		)
		if whole[requests] != "3" {
			t.Fatalf("%s is %q", requests, whole[requests])
		}
		time.Sleep(15 * time.Second)
		rdma.slow.Store(true)
		machines.Collect(t, s) // takes 1 s, and leaves a pending request behind
		rdma.slow.Store(false)
		begun := machines.Collect(t, s)[requests]
		start := time.Now()
		for time.Since(start) < 80*time.Second {
			got := machines.Collect(t, s)
			// They are left out once they are old.
			d := slices.DeleteFunc(machines.Lost(whole, got),
				func(s string) bool { return strings.HasPrefix(s, "rdma_transceiver_") })
			if len(d) != 0 {
				t.Errorf("after %s: lost %v", time.Since(start), d)
			}
			if got[requests] != begun {
				t.Errorf("after %s: %s requests, %s before", time.Since(start), got[requests], begun)
			}
			if got[age] == "0" && time.Since(start) > time.Second {
				t.Errorf("after %s: age %s", time.Since(start), got[age])
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Minute)
		if got := machines.Collect(t, s); got[age] != "0" || got[requests] == begun {
			t.Errorf("after the back-off: age %s, %s requests, %s before", got[age], got[requests], begun)
		}
	})
}

// TestNotPermitted: a denied source is counted and logged once, shown for as long as it lasts, and costs no other data.
func TestNotPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := map[string]bool{}
		h := replayed(t, "dgx-h100-ib", func(a *capture.Archive) {
			for i, e := range a.Rounds[0].Entries {
				if strings.HasSuffix(e.Path, "/mlx5_0/ports/1/counters/symbol_error") ||
					strings.HasSuffix(e.Path, "/mlx5_3/ports/1/counters/symbol_error") {
					a.Rounds[0].Entries[i] = capture.Entry{Path: e.Path, Kind: capture.Error, Errno: syscall.EACCES}
					denied[e.Path] = true
				}
			}
		})
		if len(denied) != 2 {
			t.Fatal("the fixture has not both files")
		}
		var log bytes.Buffer
		s := scheduleOf(t, h, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		for range 20 {
			got := machines.Collect(t, s)
			for _, device := range []string{"mlx5_0", "mlx5_3"} {
				if key := fmt.Sprintf(`rdma_scrape_errors_total{collector="infiniband",device=%q,reason="permission"}`,
					device); got[key] != "1" {
					t.Errorf("%s is %q", key, got[key])
				}
				if key := fmt.Sprintf(`rdma_scrape_quarantined_items{collector="infiniband",device=%q}`, device); got[key] != "" {
					t.Errorf("%s is %q", key, got[key])
				}
				if key := fmt.Sprintf(`rdma_port_link_downed_total{device=%q,port="1"}`, device); got[key] == "" {
					t.Errorf("%s is lost", key)
				}
			}
			if key := `rdma_scrape_permission_denied{source="pma"}`; got[key] != "1" {
				t.Errorf("%s is %q", key, got[key])
			}
			time.Sleep(15 * time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "symbol_error") ||
			!strings.Contains(log.String(), "CAP_DAC_READ_SEARCH") {
			t.Errorf("logged %d lines:\n%s", n, log.String())
		}
	})
}

// vitals counts the reads of vital product data, and hangs those of one function.
type vitals struct {
	host.Files
	hangs string // its address
	end   chan struct{}
	mu    sync.Mutex
	reads map[string]int
	ports int // reads of port files of mlx5_0 other than the link layer
}

func (f *vitals) Read(path string, buf []byte) ([]byte, error) {
	if function, ok := strings.CutSuffix(path, "/vpd"); ok {
		address := function[strings.LastIndexByte(function, '/')+1:]
		f.mu.Lock()
		f.reads[address]++
		f.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		if address == f.hangs {
			<-f.end
		}
	}
	return f.Files.Read(path, buf)
}

func (f *vitals) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if strings.Contains(dir, "/mlx5_0/ports/1") && name != "link_layer" {
		f.mu.Lock()
		f.ports++
		f.mu.Unlock()
	}
	return f.Files.ReadIn(dir, name, buf)
}

// TestNVLinkFunctions: vital product data is read once, a read that hangs costs its device two seconds once, and the
// ports of functions that manage NVLink switches are not read.
func TestNVLinkFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := replayed(t, "hgx-b200-nvlink-functions-ok", nil)
		files := &vitals{Files: h.Files, hangs: "0000:18:00.0", end: make(chan struct{}), reads: map[string]int{}}
		h.Files = files
		defer close(files.end)
		s := scheduleOf(t, h, nil)
		for round := range 20 {
			start := time.Now()
			got := machines.Collect(t, s)
			if took := time.Since(start); round > 0 && took > time.Second || took > 4*time.Second {
				t.Errorf("round %d takes %s", round, took)
			}
			for _, key := range []string{
				`rdma_port_info{device="mlx5_0",link_layer="InfiniBand",port="1",role="nvlink_management",role_source="vpd"}`,
				`rdma_port_info{device="mlx5_4",link_layer="InfiniBand",netdev="ibp24s0",port="1",role="compute",role_source="gpudirect"}`,
				`rdma_port_symbol_errors_total{device="mlx5_4",port="1"}`,
			} {
				if got[key] == "" {
					t.Errorf("round %d lacks %s", round, key)
				}
			}
			time.Sleep(30 * time.Second)
		}
		if len(files.reads) != 12 || files.ports != 0 {
			t.Errorf("vital product data of %d functions was read, and %d files of the ports of one that is no NIC",
				len(files.reads), files.ports)
		}
		for address, n := range files.reads {
			if n != 1 {
				t.Errorf("that of %s was read %d times", address, n)
			}
		}
	})
}
