package transceivers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/internal/transceiver/dump"
	"rdma_exporter/test/played"
)

// moduleEntries returns the entries of a capture with a module of internal/transceiver/testdata, with replacements in
// its text.
func moduleEntries(t testing.TB, netdev, name string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "transceiver", "testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := dump.Parse(strings.NewReplacer(changes...).Replace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	pages := memory.Captured()
	var b strings.Builder
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		fmt.Fprintf(&b, "-- ethtool/%s/eeprom/%s --\n%s", netdev, page, pages[page])
	}
	return b.String()
}

// moduleBus is the driver of a recorded machine whose answers a test may suppress.
type moduleBus struct {
	host.Ethtool
	mu     sync.Mutex
	asked  []transceiver.Ref
	states int                         // requests for the link state
	fails  func(transceiver.Ref) error // nil: it does not
	link   *host.LinkState
	takes  time.Duration
}

func (b *moduleBus) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	b.mu.Lock()
	b.asked = append(b.asked, ref)
	fails, takes := b.fails, b.takes
	b.mu.Unlock()
	time.Sleep(takes)
	if fails != nil {
		if err := fails(ref); err != nil {
			return nil, &access.Error{Op: "ask", Path: netlink.EEPROMName(netdev, ref), Err: err}
		}
	}
	return b.Ethtool.ModuleEEPROM(ctx, netdev, ref)
}

func (b *moduleBus) LinkState(ctx context.Context, netdev string) (host.LinkState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states++
	if b.link != nil {
		return *b.link, nil
	}
	return b.Ethtool.LinkState(ctx, netdev)
}

func (b *moduleBus) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// taken returns the requests since the last call, in a text: address, page, bank, offset and length.
func (b *moduleBus) taken() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ref := range b.asked {
		out = append(out, fmt.Sprintf("%s+%d", itemOf(ref), ref.Length))
	}
	b.asked = nil
	return out
}

// carriers replaces the carrier changes of the recorded machine.
type carriers struct {
	host.Files
	mu      sync.Mutex
	changes uint64
}

func (c *carriers) ReadIn(dir, name string, buf []byte) ([]byte, error) {
	if name == "carrier_up_count" {
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Appendf(buf[:0], "%d\n", c.changes), nil
	}
	return c.Files.ReadIn(dir, name, buf)
}

func (c *carriers) change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}

// opticsRig is the collector on a machine with one device and the test's clock.
type opticsRig struct {
	t    *testing.T
	h    *host.Host
	c    *shared.Collector
	bus  *moduleBus
	link *carriers
}

func newOpticsRig(t *testing.T, interval time.Duration, entries string) *opticsRig {
	r := &opticsRig{t: t, h: played.Machine(t, collectortest.EthTree("mlx5_0", "eth0")+entries)}
	r.bus, r.link = &moduleBus{Ethtool: r.h.Ethtool}, &carriers{Files: r.h.Files}
	r.h.Ethtool, r.h.Files, r.h.Now, r.h.Budget = r.bus, r.link, time.Now, access.NewBudget(time.Now)
	r.c = New(shared.NewState(shared.Options{ModuleInterval: interval}))
	return r
}

// start runs the background part.
func (r *opticsRig) start() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error)
	go func() { ended <- r.c.Run(ctx, r.h) }()
	return func() {
		cancel()
		<-ended
	}
}

// round makes a round and returns its samples, one line per series.
func (r *opticsRig) round() (*snapshot.Node, string) {
	r.t.Helper()
	n := &snapshot.Node{}
	done := make(chan error, 1)
	r.c.Read(context.WithoutCancel(r.t.Context()), r.h, n, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
	return n, served(r.c, n)
}

// served returns the samples without their common labels.
func served(c *shared.Collector, n *snapshot.Node) string {
	short := strings.NewReplacer(`device="mlx5_0"`, "", `netdev="eth0"`, "", `port="1"`, "",
		"rdma_transceiver_", "", ",", "")
	var b strings.Builder
	for _, line := range collectortest.Samples(c.Descs, func(s metric.Sink) { c.Emit(n, s) }) {
		fmt.Fprintln(&b, strings.Replace(short.Replace(line), "{}", "", 1))
	}
	return b.String()
}

// states returns the states in a round.
func states(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, `state{state="`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// sample returns the value of a sample; empty if absent.
func sample(text, name string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// TestModulesAsServed: metrics of modules of each layout, read by Read.
func TestModulesAsServed(t *testing.T) {
	for name, want := range map[string][]string{
		"osfp-2xdr4": {
			`info{form_factor="OSFP"media="single_mode"part_number="MMS4X00-NM"serial_number="MT2238FT00123"vendor="NVIDIA"} 1`,
			`state{state="present"} 1`, `state{state="ready"} 1`, `age_seconds 0`, `temperature_celsius 60`,
			`voltage_volts 3.2652`, `lane_active{lane="1"} 1`, `lane_active{lane="5"} 0`,
			`temperature_threshold_celsius{level="high_alarm"} 75`, `receive_power_dbm{lane="5"} -40`,
		},
		"qsfp28-sr4": {`state{state="present"} 1`, `age_seconds 0`},
		"sfp28-sr":   {`state{state="present"} 1`, `age_seconds 0`},
		"qsfp28-dac": {`state{state="present"} 1`},
		"osfp-dac":   {`state{state="present"} 1`},
		"unknown":    {`state{state="unknown_layout"} 1`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newOpticsRig(t, 0, moduleEntries(t, "eth0", name))
			n, text := r.round()
			for _, line := range want {
				if !strings.Contains("\n"+text, "\n"+line+"\n") {
					t.Errorf("lacks %s:\n%s", line, text)
				}
			}
			if !slices.Contains(want, `age_seconds 0`) && strings.Contains(text, "age_seconds") {
				t.Errorf("a module without readings has an age:\n%s", text)
			}
			if len(n.Issues) != 0 || n.Devices[0].Quarantined != 0 {
				t.Errorf("%+v %+v", n.Issues, n.Devices)
			}
		})
	}
}

// TestGarbledLight: an invalid optical power is no sample, and is reported as malformed while it lasts.
func TestGarbledLight(t *testing.T) {
	r := newOpticsRig(t, 0, moduleEntries(t, "eth0", "qsfp28-sr4", "34: 27 10 00 00", "34: 27 10 ff ff"))
	n, text := r.round()
	if len(n.Issues) != 1 || n.Issues[0].Reason != string(access.Malformed) ||
		!strings.Contains(n.Issues[0].Err.Error(), "rx_power of lane 2") {
		t.Errorf("%+v", n.Issues)
	}
	if sample(text, `receive_power_dbm{lane="1"}`) != "0" || sample(text, `receive_power_dbm{lane="2"}`) != "" ||
		sample(text, `transmit_power_dbm{lane="2"}`) == "" {
		t.Error(text)
	}
}

// The monitors of a CMIS module with eight lanes, and the static data of its first read.
var (
	cmisMonitors = []string{"50-00-0:3+1", "50-00-0:14+28", "50-11-0:128+4", "50-11-0:154+60"}
	cmisStatic   = []string{
		"50-00-0:0+3", "50-00-0:39+2", "50-00-0:85+33", "50-00-0:128+95", "50-01-0:128+128", "50-02-0:128+128",
	}
)

// TestModulesAreReadInTheBackground: no round reads a module. Static data is read every 10m, monitors at most every 30
// s.
func TestModulesAreReadInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		if _, text := r.round(); text != "" {
			t.Errorf("a round before the first read shows\n%s", text)
		}
		defer r.start()()
		synctest.Wait()
		if got := r.bus.taken(); !slices.Equal(got, slices.Concat(cmisStatic, cmisMonitors)) {
			t.Errorf("the first read requests %v", got)
		}
		for range 9 * 6 {
			time.Sleep(10 * time.Second)
			_, text := r.round()
			if age, err := strconv.ParseFloat(sample(text, "age_seconds"), 64); err != nil || age > 33 {
				t.Errorf("age %g, %v", age, err)
			}
		}
		got := r.bus.taken()
		if reads := len(got) / len(cmisMonitors); reads < 16 || reads > 18 || len(got)%len(cmisMonitors) != 0 ||
			slices.Contains(got, cmisStatic[0]) {
			t.Errorf("%d requests in nine minutes: %v", len(got), got)
		}
		time.Sleep(2 * time.Minute)
		if got := r.bus.taken(); !slices.Contains(got, cmisStatic[0]) {
			t.Error("what is static is not read again")
		}
	})
}

// TestReadingsGrowOld: while rtnl is unavailable the last readings are served with their age, and left out after three
// intervals; static data stays.
func TestReadingsGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		defer r.start()()
		r.round()
		synctest.Wait()
		_, fresh := r.round()
		r.bus.set(func() { r.bus.takes = 5 * time.Minute })
		time.Sleep(80 * time.Second)
		n, text := r.round()
		if sample(text, "age_seconds") != "80" || strings.Count(text, "\n") != strings.Count(fresh, "\n") ||
			states(text) != "present ready" {
			t.Errorf("after 80 s:\n%s", text)
		}
		if len(n.Issues) != 1 || n.Issues[0].Reason != string(access.Stuck) {
			t.Errorf("%+v", n.Issues)
		}
		time.Sleep(2 * time.Minute)
		_, text = r.round()
		if sample(text, "age_seconds") != "200" || sample(text, "temperature_celsius") != "" ||
			strings.Contains(text, "dbm{lane") || states(text) != "present" || !strings.Contains(text, "MT2238FT00123") {
			t.Errorf("after 200 s:\n%s", text)
		}
		r.bus.set(func() { r.bus.takes = 0 })
		time.Sleep(10 * time.Minute)
		if _, text = r.round(); sample(text, "temperature_celsius") != "60" || states(text) != "present ready" {
			t.Errorf("afterwards:\n%s", text)
		}
	})
}

// TestModulesKeepTheirShare: reads of a slow module take 0.25% of the time, and a tenth of that if the device's budget
// is spent.
func TestModulesKeepTheirShare(t *testing.T) {
	for spent, share := range map[bool]float64{false: 0.0025, true: 0.001} {
		t.Run(fmt.Sprintf("budget spent=%v", spent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
				r.bus.takes = 50 * time.Millisecond
				defer r.start()()
				r.round()
				const length = 4 * time.Hour
				for start := time.Now(); time.Since(start) < length; time.Sleep(15 * time.Second) {
					if spent {
						r.h.Budget.Spend("mlx5_0", time.Second)
					}
					if _, text := r.round(); sample(text, "temperature_celsius") != "60" && time.Since(start) > time.Minute {
						t.Fatalf("after %s:\n%s", time.Since(start), text)
					}
				}
				if took := float64(len(r.bus.taken())) * r.bus.takes.Seconds() / length.Seconds(); took > 1.05*share ||
					took < share/2 {
					t.Errorf("%.3f %% of the time", 100*took)
				}
			})
		})
	}
}

func failing(err error) func(transceiver.Ref) error {
	return func(transceiver.Ref) error { return err }
}

// TestModulePulledAndPlugged: a cage that the driver reports as empty is not read until the driver reports another
// state; a new module is read from scratch.
func TestModulePulledAndPlugged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		defer r.start()()
		r.round()
		synctest.Wait()
		r.bus.taken()
		r.bus.set(func() {
			r.bus.fails, r.bus.link = failing(
				syscall.EIO,
			), &host.LinkState{
				Link:     collectortest.N64(0),
				ExtState: collectortest.N64(noCable),
			}
		})
		time.Sleep(34 * time.Second)
		n, text := r.round()
		if states(text) != "absent" || strings.Count(text, "\n") != 1 || len(n.Issues) != 0 {
			t.Errorf("pulled:\n%s%v", text, n.Issues)
		}
		time.Sleep(time.Hour)
		if got := r.bus.taken(); len(got) != 3 { // one for the monitors, then two for the identity
			t.Errorf("asked of an empty cage: %v", got)
		}
		if n, _ := r.round(); n.Devices[0].Quarantined != 1 {
			t.Errorf("%+v", n.Devices)
		}
		other := played.Machine(t, moduleEntries(t, "eth0", "qsfp28-sr4"))
		r.bus.set(func() {
			r.bus.Ethtool, r.bus.fails, r.bus.link = other.Ethtool, nil, &host.LinkState{
				Link:     collectortest.N64(0),
				ExtState: collectortest.N64(3),
			}
		})
		time.Sleep(34 * time.Second)
		n, text = r.round()
		if states(text) != "present" || !strings.Contains(text, `form_factor="QSFP28"`) || n.Devices[0].Quarantined != 0 {
			t.Errorf("plugged:\n%s", text)
		}
	})
}

// TestModuleExchanged: after a carrier change static data is read again.
func TestModuleExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		defer r.start()()
		r.round()
		synctest.Wait()
		other := played.Machine(t, moduleEntries(t, "eth0", "qsfpdd-dr4"))
		r.bus.set(func() { r.bus.Ethtool = other.Ethtool })
		r.link.change()
		time.Sleep(34 * time.Second)
		if _, text := r.round(); strings.Contains(text, "MT2238FT00123") || !strings.Contains(text, `form_factor="QSFP-DD"`) {
			t.Errorf("the old module is shown:\n%s", text)
		}
	})
}

// TestModulesThatDoNotAnswer: causes are distinguished, and each cage is quarantined after two failures until its link
// changes.
func TestModulesThatDoNotAnswer(t *testing.T) {
	up, down := &host.LinkState{Link: collectortest.N64(1)}, &host.LinkState{Link: collectortest.N64(0)}
	training := &host.LinkState{Link: collectortest.N64(0), ExtState: collectortest.N64(1)}
	empty := &host.LinkState{Link: collectortest.N64(0), ExtState: collectortest.N64(noCable)}
	for _, c := range []struct {
		name   string
		err    error
		link   *host.LinkState
		states string
		issues int
		asked  int // in an hour
	}{
		{"an empty cage", syscall.EIO, empty, "absent", 0, 2},
		{"a link without a module that answers", syscall.EIO, up, "unreadable", 1, 2},
		{"no link, for a reason", syscall.EIO, training, "unreadable", 1, 2},
		{"an interface that is down", syscall.EIO, down, "no_answer", 0, 2},
		{"an identifier that mlx5 does not know", syscall.EINVAL, up, "unknown_layout", 0, 2},
		{"a driver that reads no modules", syscall.EOPNOTSUPP, up, "", 0, 2},
		{"a cage that the driver calls empty", syscall.ENODEV, down, "absent", 0, 110},
		{"firmware that is being written", syscall.EBUSY, up, "busy", 0, 110},
		{"want of CAP_NET_ADMIN", syscall.EPERM, up, "", 1, 110},
		{"no such netlink family", syscall.EPROTONOSUPPORT, up, "", 0, 110},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newOpticsRig(t, 30*time.Second, "")
				r.bus.fails, r.bus.link = failing(c.err), c.link
				defer r.start()()
				r.round()
				synctest.Wait()
				n, text := r.round()
				if states(text) != c.states || len(n.Issues) != c.issues {
					t.Errorf("%q, issues %v", states(text), n.Issues)
				}
				time.Sleep(time.Hour)
				asked := len(r.bus.taken())
				if asked < c.asked || asked > c.asked+15 || c.asked == 2 && asked != 2 {
					t.Errorf("asked %d times", asked)
				}
				if _, text := r.round(); states(text) != c.states {
					t.Errorf("after an hour: %q", states(text))
				}
				r.link.change()
				time.Sleep(34 * time.Second)
				if len(r.bus.taken()) == 0 {
					t.Error("it is not asked after its link has changed")
				}
			})
		})
	}
}

// TestBusyModuleKeepsItsIdentity: the identity is kept while firmware is written.
func TestBusyModuleKeepsItsIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		defer r.start()()
		r.round()
		synctest.Wait()
		r.bus.set(func() { r.bus.fails = failing(syscall.EBUSY) })
		time.Sleep(2 * time.Minute)
		if _, text := r.round(); states(text) != "busy" || !strings.Contains(text, "MT2238FT00123") ||
			sample(text, "temperature_celsius") != "" {
			t.Errorf("busy:\n%s", text)
		}
		r.bus.set(func() { r.bus.fails = nil })
		time.Sleep(34 * time.Second)
		if _, text := r.round(); states(text) != "present ready" || sample(text, "temperature_celsius") != "60" {
			t.Errorf("afterwards:\n%s", text)
		}
	})
}

// TestPageThatFails: a failing page costs its content; it is quarantined after two failures, and old readings are not
// served as new ones.
func TestPageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		defer r.start()()
		r.round()
		synctest.Wait()
		r.bus.set(func() {
			r.bus.fails = func(ref transceiver.Ref) error {
				if ref.Page == 0x11 {
					return syscall.EIO
				}
				return nil
			}
		})
		r.bus.taken()
		time.Sleep(34 * time.Second)
		n, text := r.round()
		if strings.Contains(text, "dbm{lane") || sample(text, "temperature_celsius") != "60" ||
			states(text) != "present ready" || len(n.Issues) != 2 {
			t.Errorf("%s%v", text, n.Issues)
		}
		time.Sleep(8 * time.Minute)
		asked := 0
		for _, item := range r.bus.taken() {
			if strings.HasPrefix(item, "50-11") {
				asked++
			}
		}
		n, _ = r.round()
		if asked != 4 || n.Devices[0].Quarantined != 2 || len(n.Issues) != 0 {
			t.Errorf("asked %d times; %+v, %v", asked, n.Devices, n.Issues)
		}
	})
}

// TestByteThatFails: a failing byte is quarantined, in the lower memory as well, and the rest is read as before.
func TestByteThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 30*time.Second, moduleEntries(t, "eth0", "osfp-2xdr4"))
		r.bus.fails = func(ref transceiver.Ref) error {
			if ref.Offset == 14 {
				return syscall.EIO
			}
			return nil
		}
		r.bus.link = &host.LinkState{Link: collectortest.N64(1)}
		defer r.start()()
		r.round()
		synctest.Wait()
		if _, text := r.round(); states(text) != "unreadable" {
			t.Errorf("at first %q", states(text))
		}
		time.Sleep(2 * time.Minute)
		r.bus.taken()
		time.Sleep(5 * time.Minute)
		n, text := r.round()
		if states(text) != "present ready" || sample(text, "temperature_celsius") != "" ||
			sample(text, `receive_power_dbm{lane="1"}`) != "0" || n.Devices[0].Quarantined != 1 {
			t.Errorf("%s%+v", text, n.Devices)
		}
		if got := r.bus.taken(); slices.Contains(got, cmisStatic[0]) || len(got) > 3*10 {
			t.Errorf("%v", got)
		}
	})
}

// TestBanksOfMlx5: banks other than the first are not read, and their lanes are absent.
func TestBanksOfMlx5(t *testing.T) {
	for driver, lanes := range map[string]int{"mlx5_core": 8, "bnxt_en": 16} {
		t.Run(driver, func(t *testing.T) {
			entries := moduleEntries(t, "eth0", "osfp-2xdr4", "[A0 page 01]\n", "[A0 page 01]\n142: 01\n")
			entries += strings.Replace(entries[strings.Index(entries, "-- ethtool/eth0/eeprom/50-11-0"):],
				"50-11-0", "50-11-1", 1)
			r := newOpticsRig(t, 0, entries)
			g := newCage(counters.NetdevTarget{Device: "mlx5_0", Port: 1, Netdev: "eth0", Driver: driver})
			seen := g.update(reading.New(t.Context(), r.h, "mlx5_0"))
			banked := slices.ContainsFunc(r.bus.asked, func(ref transceiver.Ref) bool { return ref.Bank > 0 })
			if seen.Module == nil || len(seen.Module.Lanes) != lanes || banked != (lanes > 8) || len(seen.issues) != 0 {
				t.Errorf("%+v, %v", seen, r.bus.asked)
			}
		})
	}
}

// TestSharedModules: the first port in order represents all ports that report a module.
func TestSharedModules(t *testing.T) {
	m := &transceiver.Module{Vendor: "NVIDIA", PartNumber: "MMS4X00-NM", SerialNumber: "MT1"}
	other, nameless := *m, *m
	other.SerialNumber, nameless.SerialNumber = "MT2", ""
	cages := []wire.Cage{
		{Netdev: "a", Module: m},
		{Netdev: "b"},
		{Netdev: "c", Module: &nameless},
		{Netdev: "d", Module: m},
		{Netdev: "e", Module: &other},
		{Netdev: "f", Module: &nameless},
		{Netdev: "g", Module: m},
	}
	markShared(cages)
	var got []string
	for _, c := range cages {
		got = append(got, c.Netdev+":"+c.First)
	}
	if want := "a: b: c: d:a e: f: g:a"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestOwnReadingsAreSpaced: Read reads a module every 30 s.
func TestOwnReadingsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newOpticsRig(t, 0, moduleEntries(t, "eth0", "osfp-2xdr4"))
		for i, want := range []string{"0", "15", "0", "15", "0"} {
			if _, text := r.round(); sample(text, "age_seconds") != want {
				t.Errorf("round %d: age %s", i, sample(text, "age_seconds"))
			}
			time.Sleep(15 * time.Second)
		}
	})
}
