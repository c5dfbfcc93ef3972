// Package collectortest plays machines for the tests of collectors: entries of a capture, readers of them, and the
// samples of a round.
package collectortest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rdma_exporter/collector/metric"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/nvml"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/site"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/test/played"
)

// ReaderOf returns a reader of mlx5_0 on a machine of these entries.
func ReaderOf(t testing.TB, entries string) *reading.Reader {
	t.Helper()
	return reading.New(t.Context(), played.Machine(t, entries), "mlx5_0")
}

// ReadsOf returns reads of the identity of mlx5_0 on a machine of these entries.
func ReadsOf(t testing.TB, entries string) reading.Reads {
	t.Helper()
	return ReaderOf(t, entries).From(source.Identity)
}

// DeviceOf returns what the device of a reader is, by the roster that devices returns (shared.Roster.Of).
func DeviceOf(
	t testing.TB, r *reading.Reader, devices func(*host.Host, *snapshot.Node) (*reading.Roster, error),
) *reading.Device {
	t.Helper()
	roster, err := devices(r.Host, &snapshot.Node{})
	if err != nil {
		t.Fatal(err)
	}
	return roster.Device(r, r.Device)
}

// Value returns the value behind p, nil if there is none.
func Value(v *uint64) any {
	if v == nil {
		return nil
	}
	return *v
}

// Samples returns the lines of the emitted samples, families in the order of descs.
func Samples(descs []*metric.Desc, emit func(metric.Sink)) (out []string) {
	s := exposition.NewSink(descs)
	s.Begin()
	emit(s)
	for l := range strings.Lines(string(exposition.AppendText(nil, s.End()))) {
		if !strings.HasPrefix(l, "#") {
			out = append(out, strings.TrimSuffix(l, "\n"))
		}
	}
	for reason, n := range s.Dropped() {
		out = append(out, "dropped "+reason+strings.Repeat("!", n))
	}
	return out
}

// Collect makes a round and returns its section and samples.
func Collect(
	t *testing.T, h *host.Host, descs []*metric.Desc, read func(context.Context, *host.Host, *snapshot.Node, func(error)),
	emit func(*snapshot.Node, metric.Sink),
) (snapshot.Node, []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var n snapshot.Node
	ended := 0
	read(ctx, h, &n, func(err error) {
		ended++
		if err != nil {
			t.Error(err)
		}
	})
	if ended != 1 {
		t.Fatalf("done %d times", ended)
	}
	sink := exposition.NewSink(descs)
	sink.Begin()
	emit(&n, sink)
	families := sink.End()
	if len(sink.Dropped()) > 0 {
		t.Errorf("dropped: %v", sink.Dropped())
	}
	var samples []string
	for line := range strings.Lines(string(exposition.AppendText(nil, families))) {
		if line[0] != '#' {
			samples = append(samples, strings.TrimSpace(line))
		}
	}
	return n, samples
}

// FakeGPUs is a host access to GPUs.
type FakeGPUs struct {
	nvml.NoNVML
	NVML     accel.NVML
	Errs     []error
	Err      error
	Takes    atomic.Int64 // nanoseconds, a reading
	Released *accel.GPURelease
	WatchErr error
	Reads    atomic.Int64
	Full     atomic.Bool
}

// SlowGPUs returns GPUs of which a read takes so long.
func SlowGPUs(takes time.Duration) *FakeGPUs {
	f := &FakeGPUs{}
	f.Takes.Store(int64(takes))
	return f
}

func (f *FakeGPUs) ReadGPUs(_ context.Context, full bool) (accel.NVML, []error, error) {
	f.Reads.Add(1)
	f.Full.Store(full)
	time.Sleep(time.Duration(f.Takes.Load()))
	return f.NVML, f.Errs, f.Err
}

func (f *FakeGPUs) WatchGPUs(ctx context.Context) error {
	if f.WatchErr != nil {
		return f.WatchErr
	}
	<-ctx.Done()
	return nil
}

func (f *FakeGPUs) GPUsReleased() *accel.GPURelease { return f.Released }

// ReadOnce reads with a collector that has returned before done is called.
func ReadOnce(
	ctx context.Context, read func(context.Context, *host.Host, *snapshot.Node, func(error)), h *host.Host,
) (n snapshot.Node, err error) {
	read(ctx, h, &n, func(e error) { err = e })
	return n, err
}

// Files returns entries of a capture.
func Files(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "-- %s --\n%s\n", pairs[i], pairs[i+1])
	}
	return b.String()
}

// N64 returns a pointer to n.
func N64(v uint64) *uint64 { return &v }

// EthTree returns a RoCE device of a physical function and its netdev.
func EthTree(device, netdev string) string {
	var b strings.Builder
	fn := "sys/devices/pci0000:00/0000:18:00.0"
	class := "sys/class/infiniband/" + device
	for name, text := range map[string]string{
		fn + "/infiniband/" + device + "/node_type":          "1: CA",
		fn + "/infiniband/" + device + "/ports/1/link_layer": "Ethernet",
		fn + "/vendor": "0x15b3", fn + "/device": "0x1021", fn + "/class": "0x020000",
		fn + "/net/" + netdev + "/type": "1", fn + "/net/" + netdev + "/dev_port": "0",
		fn + "/net/" + netdev + "/carrier_changes": "2",
	} {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, text)
	}
	fmt.Fprintf(&b, "-- %s -> ../../devices/pci0000:00/0000:18:00.0/infiniband/%s --\n", class, device)
	fmt.Fprintf(&b, "-- %s/infiniband/%s/device -> ../../../0000:18:00.0 --\n", fn, device)
	fmt.Fprintf(&b, "-- %s/driver -> ../../../bus/pci/drivers/mlx5_core --\n", fn)
	fmt.Fprintf(&b, "-- sys/class/net/%s -> ../../devices/pci0000:00/0000:18:00.0/net/%s --\n", netdev, netdev)
	fmt.Fprintf(&b, "-- %s/net/%s/device -> ../../../0000:18:00.0 --\n", fn, netdev)
	return b.String()
}

// PCIeTree returns a device behind one switch. extra adds or replaces files.
func PCIeTree(extra string) string {
	return PCIeChain(extra, "0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0")
}

// PCIeChain returns a device at the end of a chain of functions.
func PCIeChain(extra string, chain ...string) string {
	var b strings.Builder
	dir := "sys/devices/pci0000:15"
	for _, address := range chain {
		dir += "/" + address
		fmt.Fprintf(&b, "-- sys/bus/pci/devices/%s -> ../../../devices/%s --\n",
			address, strings.TrimPrefix(dir, "sys/devices/"))
		for name, value := range map[string]string{
			"current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "current_link_width": "16",
			"max_link_width": "16",
		} {
			if !strings.Contains(extra, dir+"/"+name+" ") {
				fmt.Fprintf(&b, "-- %s/%s --\n%s\n", dir, name, value)
			}
		}
	}
	fmt.Fprintf(&b, "-- sys/class/infiniband/mlx5_0 -> ../../devices/%s/infiniband/mlx5_0 --\n",
		strings.TrimPrefix(dir, "sys/devices/"))
	fmt.Fprintf(&b, "-- %s/infiniband/mlx5_0/device -> ../.. --\n", dir)
	return b.String() + extra
}

// APort returns an RDMA device with one port, with two files of PMA counters and two of hw_counters.
func APort(dir, name string) string {
	return fmt.Sprintf(`-- sys/class/infiniband/%[2]s -> ../../devices/%[1]s/infiniband/%[2]s --
-- sys/devices/%[1]s/infiniband/%[2]s/device -> ../.. --
-- sys/devices/%[1]s/infiniband/%[2]s/ports/1 @files --
link_layer: InfiniBand
state: 4: ACTIVE
phys_state: 5: LinkUp
-- sys/devices/%[1]s/infiniband/%[2]s/ports/1/counters @files --
symbol_error: 1
VL15_dropped: 2
-- sys/devices/%[1]s/infiniband/%[2]s/ports/1/hw_counters @files --
rx_write_requests: 3
duplicate_request: 4
out_of_sequence: 5
`, dir, name)
}

// ManyFunctions is a host with a physical function, virtual functions, a subfunction, and a virtual function as in a
// guest.
var ManyFunctions = APort("pci/0000:18:00.0", "mlx5_0") + APort("pci/0000:18:00.1", "mlx5_10") +
	APort("pci/0000:18:00.2", "mlx5_9") +
	APort("pci/0000:18:00.0/mlx5_core.sf.4", "mlx5_3") + APort("pci/0000:19:00.0", "mlx5_4") +
	`-- sys/devices/pci/0000:18:00.1/physfn -> ../0000:18:00.0 --
-- sys/devices/pci/0000:18:00.2/physfn -> ../0000:18:00.0 --
-- sys/devices/pci/0000:19:00.0 @files --
vendor: 0x15b3
device: 0x101e
`

// Agents is a subnet with the agents and subnet managers of a test.
type Agents struct {
	host.Subnet
	mu                             sync.Mutex
	counters                       func(device string, a *host.Agent) (host.IBCounters, error)
	OfFEC                          func(device string, a *host.Agent) (host.IBFEC, error) // nil: not supported
	Settings                       func() (host.IBPortSettings, error)                    // nil: nothing is known
	asked, AskedFEC, AskedSettings int
}

func (s *Agents) PortFEC(_ context.Context, device string, _ int, a *host.Agent) (host.IBFEC, error) {
	s.mu.Lock()
	s.AskedFEC++
	answer := s.OfFEC
	s.mu.Unlock()
	if answer == nil {
		return host.IBFEC{}, nil
	}
	return answer(device, a)
}

func (s *Agents) PortSettings(context.Context, string, int) (host.IBPortSettings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.AskedSettings++
	if s.Settings == nil {
		return host.IBPortSettings{}, nil
	}
	return s.Settings()
}

func (s *Agents) Counters(_ context.Context, device string, _ int, a *host.Agent) (host.IBCounters, error) {
	s.mu.Lock()
	s.asked++
	answer := s.counters
	s.mu.Unlock()
	return answer(device, a)
}

// Answer replaces an answer.
func (s *Agents) Answer(counters func(device string, a *host.Agent) (host.IBCounters, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters = counters
}

func (s *Agents) Times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Conf returns a site configuration that ignores what is listed.
func Conf(t *testing.T, ignores string) *site.Config {
	t.Helper()
	c, err := site.Parse([]byte("ignore:\n" + ignores))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Pinned returns the site configuration of a text.
func Pinned(t *testing.T, config string) *site.Store {
	t.Helper()
	c, err := site.Parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	store := &site.Store{}
	store.Replace(c)
	return store
}
