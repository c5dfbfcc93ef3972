//go:build e2e

package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

const (
	traceSince          = "rdma_gdr_trace_start_time_seconds{}"
	registrationsSeries = "rdma_gdr_trace_registrations_total{}"
	udmabufSize         = 64 << 10 // of the registrar
	hostSize            = 8 << 10
)

func registeredBytes(mechanism string) string {
	return fmt.Sprintf(`rdma_gdr_registered_bytes{device="mlx5_0",mechanism=%q}`, mechanism)
}

// TestEBPF: registrations through the kernel's uverbs, counted by eBPF programs.
func TestEBPF(t *testing.T) {
	exporter := program.Exporter(t)
	g := bootGuest(t, 1, 1)
	t.Logf("kernel %s", g.must(t, "uname -r"))
	g.must(t, "modprobe fakerdma ll=i verbs=1")
	g.shareHostTest(t)
	g.shareRegistrar(t)
	g.programs(t, "none")
	alone := g.churn(t, 20000, "unpaced=1")
	g.startExporter(t, exporter, "--no-alerting", "--collect.no-budget", "--collector.ebpf=on")

	for _, step := range []struct {
		name string
		run  func(*testing.T, *guest)
	}{
		{"programs attached", testAttached},
		{"registrations of a process", testRegistrations},
		{"events", testAsyncEvents},
		{"process killed", testRegistrarKilled},
		{"hundred thousand registrations", func(t *testing.T, g *guest) { testManyRegistrations(t, g, alone) }},
		{"exporter killed", testExporterKilled},
		{"modules reloaded", testModulesReloaded},
		{"too many events", testTooManyEvents},
		{"without capabilities", testNoCapabilities},
		{"two capabilities", testTwoCapabilities},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, g) })
	}
	t.Run("logs", func(t *testing.T) { testLogs(t, g) })
}

// shareRegistrar builds the program that registers memory.
func (g *guest) shareRegistrar(t *testing.T) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-o",
		filepath.Join(g.share, "registrar"), "./registrar")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.must(t, "cp "+shareMount+"/registrar /tmp/ && ls /dev/udmabuf")
}

// programs expects the kernel to have eBPF programs of the exporter, or none.
func (g *guest) programs(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() error {
		out, err := g.run("RDMA_PROGRAMS=" + want + " " + shareMount + "/live.test -test.v -test.run ProgramsInGuest")
		if err == nil {
			t.Log(out)
		}
		return err
	})
}

// registrar starts a registrar that holds what it registers, and returns its output once it has.
func (g *guest) registrar(t *testing.T, args string) {
	t.Helper()
	g.startRegistrar(t, args)
	g.registrarReady(t)
}

func (g *guest) startRegistrar(t *testing.T, args string) {
	t.Helper()
	g.must(t, "rm -f /tmp/ready; (sleep 3000 | /tmp/registrar mlx5_0 "+args+") >/tmp/ready 2>&1 &")
}

func (g *guest) registrarReady(t *testing.T) {
	t.Helper()
	within(t, 20*patienceOfGuest, func() error {
		out, err := g.run("cat /tmp/ready")
		if err == nil && out == "" {
			return errors.New("not ready")
		}
		if err == nil && !strings.HasPrefix(out, "ready ") {
			t.Fatalf("registrar: %s", out)
		}
		return err
	})
}

func (g *guest) kill(t *testing.T) {
	t.Helper()
	g.must(t, "kill $(cut -d' ' -f2 /tmp/ready)")
}

// churn registers and releases DMA-BUFs, and returns the time of one in nanoseconds.
func (g *guest) churn(t *testing.T, n int, args string) int {
	t.Helper()
	g.registrar(t, fmt.Sprintf("churn=%d %s", n, args))
	defer g.kill(t)
	took, err := strconv.Atoi(g.must(t, "cut -d' ' -f4 /tmp/ready"))
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// now returns the present value of a series, 0 if there is none.
func (g *guest) now(t *testing.T, key string) (v float64) {
	t.Helper()
	eventually(t, func() error {
		s, err := scrape(t.Context(), g.url)
		v = s[key]
		return err
	})
	return v
}

func testAttached(t *testing.T, g *guest) {
	within(t, 4*patienceOfGuest, func() error {
		s, err := scrape(t.Context(), g.url)
		if err == nil && s[traceSince] == 0 {
			err = fmt.Errorf("no %s", traceSince)
		}
		return err
	})
	g.expect(t, samples{
		"rdma_gdr_trace_lost_events_total{}": 0, registrationsSeries: 0,
		`rdma_device_qp_fatal_events_total{device="mlx5_0"}`: 0,
	})
	g.programs(t, "attached")
}

func testRegistrations(t *testing.T, g *guest) {
	g.registrar(t, "dmabuf=3 host=5 churn=1000 qp=1")
	g.expect(t, samples{
		registeredBytes("dmabuf_host"): 3 * udmabufSize, registeredBytes("host"): 5 * hostSize,
		registrationsSeries: 3 + 5 + 1000, "rdma_gdr_trace_lost_events_total{}": 0,
	})
}

func testAsyncEvents(t *testing.T, g *guest) {
	const qpFatal, accessError, lastWQE, portError = 1, 3, 16, 10
	for _, kind := range []int{qpFatal, accessError, accessError, lastWQE} {
		g.set(t, "mlx5_0", map[string]int{"qp_event": kind})
	}
	g.set(t, "mlx5_0", map[string]int{"device_event": portError})
	async := func(event string) string {
		return fmt.Sprintf(`rdma_device_async_events_total{device="mlx5_0",event=%q}`, event)
	}
	g.expect(t, samples{
		`rdma_device_qp_fatal_events_total{device="mlx5_0"}`: 3,
		async("qp_fatal"): 1, async("qp_access_error"): 2, async("qp_last_wqe_reached"): 1, async("port_error"): 1,
	})
}

// testRegistrarKilled: the kernel releases the memory of a killed process.
func testRegistrarKilled(t *testing.T, g *guest) {
	g.kill(t)
	g.expectGone(t, registeredBytes("dmabuf_host"))
	g.expectGone(t, registeredBytes("host"))
}

// slower returns the factor by which the guest is slower in a calculation.
func (g *guest) slower(t *testing.T) float64 {
	t.Helper()
	const sum = "busybox sha256sum "
	start := time.Now()
	if err := exec.CommandContext(t.Context(), "sh", "-c", sum+filepath.Join(g.share, "registrar")).Run(); err != nil {
		t.Fatal(err)
	}
	here := time.Since(start)
	start = time.Now()
	g.must(t, sum+"/tmp/registrar")
	return time.Since(start).Seconds() / here.Seconds()
}

func testManyRegistrations(t *testing.T, g *guest, alone int) {
	const n = 100_000
	before := g.now(t, registrationsSeries)
	traced := g.churn(t, n, "")
	g.expect(t, samples{registrationsSeries: before + n, "rdma_gdr_trace_lost_events_total{}": 0})
	t.Logf("a DMA-BUF registered and released: %d ns without programs, %d ns with them; the guest's processor is %.0f times slower than this machine's",
		alone, traced, g.slower(t))
}

// testExporterKilled: an exporter that is killed among 100,000 registrations leaves no program, and the next one counts
// from its start.
func testExporterKilled(t *testing.T, g *guest) {
	const n = 100_000
	g.startRegistrar(t, fmt.Sprintf("dmabuf=2 churn=%d", n))
	time.Sleep(2 * time.Second)
	began := g.now(t, traceSince)
	g.must(t, "kill -9 $(pidof rdma_exporter)")
	g.programs(t, "none")
	g.must(t,
		"/tmp/rdma_exporter --no-alerting --collect.no-budget --collector.ebpf=on --web.listen-address=:"+
			guestPort+" >"+shareMount+"/exporter.log 2>&1 &")
	within(t, 4*patienceOfGuest, func() error {
		s, err := scrape(t.Context(), g.url)
		if err == nil && s[traceSince] <= began {
			err = fmt.Errorf("%s %f, before %f", traceSince, s[traceSince], began)
		}
		return err
	})
	g.registrarReady(t)
	counted := g.now(t, registrationsSeries)
	if counted == 0 || counted >= n {
		t.Errorf("%.0f registrations since the start, want some of %d", counted, n)
	}
	g.expectGone(t, registeredBytes("dmabuf_host")) // of before
	g.kill(t)
	g.registrar(t, "dmabuf=4")
	g.expect(t, samples{
		registeredBytes("dmabuf_host"): 4 * udmabufSize, registrationsSeries: counted + 4,
		"rdma_gdr_trace_lost_events_total{}": 0,
	})
	g.kill(t)
	g.expectGone(t, registeredBytes("dmabuf_host"))
}

// testModulesReloaded: programs do not prevent that modules are unloaded, and observe them again after they are loaded.
func testModulesReloaded(t *testing.T, g *guest) {
	g.must(t, "rmmod fakerdma rdma_ucm rdma_rxe && rmmod ib_umad; rmmod rdma_cm iw_cm ib_cm; rmmod ib_uverbs")
	g.must(t, "modprobe ib_uverbs && modprobe fakerdma ll=i verbs=1")
	g.registrar(t, "host=3 qp=1")
	g.kill(t)
	within(t, 8*patienceOfGuest, func() error {
		g.registrar(t, "dmabuf=1 host=2")
		defer g.kill(t)
		time.Sleep(2 * time.Second)
		return g.differs(t, samples{registeredBytes("host"): 2 * hostSize, registeredBytes("dmabuf_host"): udmabufSize})
	})
}

// testTooManyEvents: above 10,000 events per second the programs are detached for minutes, with one line.
func testTooManyEvents(t *testing.T, g *guest) {
	for range 4 {
		g.must(t, "(sleep 3000 | /tmp/registrar mlx5_0 churn=200000 unpaced=1) >/dev/null 2>&1 &")
	}
	defer g.must(t, "kill $(pidof registrar)")
	within(t, 4*patienceOfGuest, func() error {
		s, err := scrape(t.Context(), g.url)
		if _, attached := s[traceSince]; err == nil && attached {
			err = fmt.Errorf("still attached: %f registrations", s[registrationsSeries])
		}
		return err
	})
	g.programs(t, "none")
	if log := content(filepath.Join(g.share, "exporter.log")); strings.Count(log, "events per second") != 1 {
		t.Errorf("not one line:\n%s", log)
	}
}

// observer starts the exporter as nobody with capabilities (setpriv), in place of the one that runs.
func (g *guest) observer(t *testing.T, capabilities, log string) {
	t.Helper()
	g.must(t, "kill $(pidof rdma_exporter); sleep 1")
	g.must(t, "/usr/bin/setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all"+capabilities+" --inh-caps=-all"+capabilities+
		" --ambient-caps=-all"+capabilities+" /tmp/rdma_exporter --no-alerting --collect.no-budget --web.listen-address=:"+
		guestPort+" >"+shareMount+"/"+log+" 2>&1 &")
}

// testTwoCapabilities: CAP_BPF and CAP_PERFMON, which the drop-in and the chart give, are enough for DMA-BUFs, and for
// everything where kernel.perf_event_paranoid is not above 2.
func testTwoCapabilities(t *testing.T, g *guest) {
	const paranoid = "/proc/sys/kernel/perf_event_paranoid"
	was := g.must(t, "cat "+paranoid)
	defer g.must(t, "echo "+was+" >"+paranoid)

	g.must(t, "echo 3 >"+paranoid)
	g.observer(t, ",+bpf,+perfmon", "observer.log")
	g.expectWithin(t, 4*patienceOfGuest, samples{registrationsSeries: 0})
	g.registrar(t, "dmabuf=3 host=5 churn=1000")
	// The RDMA device by its PCI function.
	g.expect(t, samples{registeredBytes("dmabuf_host"): 3 * udmabufSize, registrationsSeries: 3 + 1000})
	testRegistrarKilled(t, g)
	if topology := g.must(t, "wget -qO- http://127.0.0.1:"+guestPort+"/api/v1/topology"); !strings.Contains(topology,
		"host memory: kprobes need kernel.perf_event_paranoid of 2 or less") {
		t.Errorf("not said what is not observed: %s", topology)
	}

	g.must(t, "echo 2 >"+paranoid)
	g.observer(t, ",+bpf,+perfmon", "observer.log")
	testAttached(t, g)
	testRegistrations(t, g)
	testRegistrarKilled(t, g)
	if log := content(filepath.Join(g.share, "observer.log")); strings.Contains(log, "eBPF") {
		t.Errorf("log:\n%s", log)
	}
}

// testNoCapabilities: without the capabilities nothing is attached, and nothing is reported as a fault.
func testNoCapabilities(t *testing.T, g *guest) {
	g.observer(t, "", "nobody.log")
	eventually(t, func() error {
		s, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		if _, attached := s[traceSince]; attached || s[`rdma_scrape_permission_denied{source="ebpf"}`] != 0 {
			return fmt.Errorf("attached: %t", attached)
		}
		return nil
	})
	if log := content(filepath.Join(g.share, "nobody.log")); strings.Contains(log, "eBPF") {
		t.Errorf("log:\n%s", log)
	}
	g.programs(t, "none")
}
