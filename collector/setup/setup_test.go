package setup

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/modules"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/test/played"
)

// TestSetupFiles: a pattern stands for the files and directories that exist, and for the ones that could not be read.
func TestSetupFiles(t *testing.T) {
	r := collectortest.ReadsOf(
		t,
		collectortest.Files("etc/a.d/x.conf", "one", "etc/a.d/y.conf", "two\nlines", "lib/modules/1/extra/m.ko", "",
			"lib/modules/2/build", "")+"-- etc/a.d/z.conf !EACCES --\n-- etc/secret !EACCES --\n",
	)
	got := map[string]hostdata.SetupFile{}
	for _, pattern := range []string{
		"etc/a.d/*", "etc/a.d/", "etc/none", "etc/none/", "none/*/x", "lib/modules/*/extra/", "etc/secret/*",
	} {
		readSetupFiles(r, pattern, got)
	}
	want := map[string]hostdata.SetupFile{
		"etc/a.d/x.conf": {Text: "one"}, "etc/a.d/y.conf": {Text: "two\nlines"}, "etc/a.d/z.conf": {Unread: "permission"},
		"etc/a.d":             {Text: "x.conf\ny.conf\nz.conf"},
		"lib/modules/1/extra": {Text: "m.ko"}, "etc/secret": {Unread: "permission"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestSetupLaunchers: services are searched on hosts with RDMA devices, and an incomplete search is not the absence of
// others.
func TestSetupLaunchers(t *testing.T) {
	device := collectortest.Files("sys/class/infiniband/mlx5_0/node_guid", "b83f:d203:0050:a1c0")
	memlock := uint64(8388608)
	for _, c := range []struct {
		name, entries string
		want          hostdata.Setup
	}{
		{"no device", collectortest.Files("launchers", "slurmd: unlimited"), hostdata.Setup{}},
		{"recorded by an earlier version", device, hostdata.Setup{}},
		{"none", device + "-- launchers --\n", hostdata.Setup{Launchers: []hostdata.Launcher{}}},
		{"found", device + collectortest.Files("launchers", "slurmd: unlimited\nsshd: 8388608"), hostdata.Setup{Launchers: []hostdata.Launcher{{Name: "slurmd", Unlimited: true}, {Name: "sshd", LockedMemory: &memlock}}}},
		{"cut", device + collectortest.Files("launchers", "slurmd: unlimited\n..."), hostdata.Setup{Launchers: []hostdata.Launcher{{Name: "slurmd", Unlimited: true}}, LaunchersUnread: "not completed"}},
		{"not permitted", device + "-- launchers !EACCES --\n", hostdata.Setup{LaunchersUnread: "permission"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got hostdata.Setup
			readLaunchers(collectortest.ReaderOf(t, c.entries), &got)
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestNodeModes: the permission bits of the nodes for applications, differing ones joined.
func TestNodeModes(t *testing.T) {
	nodes := "-- dev/infiniband/rdma_cm @unread --\n-- dev/infiniband/uverbs0 @unread --\n-- dev/infiniband/uverbs1 @unread --\n"
	for mode, entries := range map[string]string{
		"":          nodes,
		"0666":      nodes + collectortest.Files("modes/dev/infiniband/uverbs0", "0666", "modes/dev/infiniband/uverbs1", "0666", "modes/dev/infiniband/rdma_cm", "0600"),
		"0600,0666": nodes + collectortest.Files("modes/dev/infiniband/uverbs0", "0666", "modes/dev/infiniband/uverbs1", "0600"),
	} {
		got := modules.ReadNodes(collectortest.ReadsOf(t, entries))
		if len(got) != 3 || got[0].Mode != "" || got[1].Class != "uverbs" || got[1].Mode != mode || got[1].Present != 2 {
			t.Errorf("%+v, want mode %q", got, mode)
		}
	}
}

// TestSetupFilesOfNetdevs: a * is each name of a directory, an @ each netdev of an RDMA device, once.
func TestSetupFilesOfNetdevs(t *testing.T) {
	h := played.Machine(t, collectortest.APort("pci/0000:18:00.0", "mlx5_0")+collectortest.APort("pci/0000:18:00.1", "mlx5_1")+`-- sys/devices/pci/0000:18:00.0/net/eth0 @files --
mtu: 9000
-- sys/devices/pci/0000:18:00.1/net/ib0 @files --
mode: datagram
-- proc/sys/net/ipv4/conf/all @files --
arp_ignore: 0
-- proc/sys/net/ipv4/conf/eth0 @files --
arp_ignore: 1
-- proc/sys/net/ipv4/conf/veth7 @files --
arp_ignore: 2
`)
	for pattern, want := range map[string][]string{
		"sys/class/infiniband/*/device/net/*/mode": {"sys/class/infiniband/mlx5_1/device/net/ib0/mode"},
		"proc/sys/net/ipv4/conf/@/arp_ignore":      {"proc/sys/net/ipv4/conf/eth0/arp_ignore"},
		"proc/sys/net/ipv4/conf/*/arp_ignore":      {"proc/sys/net/ipv4/conf/all/arp_ignore", "proc/sys/net/ipv4/conf/eth0/arp_ignore", "proc/sys/net/ipv4/conf/veth7/arp_ignore"},
		"proc/sys/net/ipv4/conf/":                  {"proc/sys/net/ipv4/conf"},
		"proc/sys/net/ipv4/*/none/arp_ignore":      nil,
	} {
		r, read := reading.New(t.Context(), h, "").From(source.Setup), map[string]hostdata.SetupFile{}
		readSetupFiles(r, pattern, read)
		if got := slices.Sorted(maps.Keys(read)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// TestSetupIsRecorded: a recording of what the settings are read from has the same settings when it is replayed.
func TestSetupIsRecorded(t *testing.T) {
	for _, name := range []string{"ofed-not-in-use", "memlock-of-containers-ok", "gds-compat-ok"} {
		t.Run(name, func(t *testing.T) {
			a, err := capture.Load("../../fixtures/sysfs/"+name+".txtar", nil)
			if err != nil {
				t.Fatal(err)
			}
			read := func(h *host.Host) *snapshot.Node {
				n := &snapshot.Node{}
				with := shared.NewState(shared.Options{})
				for _, c := range []*shared.Collector{modules.New(with), New(with)} {
					c.Read(t.Context(), h, n, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
				return n
			}
			playedHost := func(a *capture.Archive) *host.Host {
				p, err := replay.Play(a, time.Unix(0, 0))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Close() })
				return p.Host()
			}
			first := playedHost(a)
			want := read(first)
			rec := replay.NewRecorder(first)
			read(rec.Host())
			rec.EndRound(0)
			got := read(playedHost(rec.Archive(capture.Meta{Time: time.Unix(0, 0)})))
			if len(want.Setup.Files) < 8 || !reflect.DeepEqual(got.Setup, want.Setup) ||
				!reflect.DeepEqual(got.Modules.Nodes, want.Modules.Nodes) {
				t.Errorf("%+v\nwant %+v", got.Setup, want.Setup)
			}
		})
	}
}

// TestInterrupts: the counts of all interrupts of a function by CPU; virtual functions and other devices have none.
func TestInterrupts(t *testing.T) {
	const a, b, c = "sys/class/infiniband/mlx5_0/device",
		"sys/class/infiniband/mlx5_1/device", "sys/class/infiniband/mlx5_2/device"
	r := collectortest.ReadsOf(t, collectortest.Files(
		a+"/local_cpulist", "0-1,4", a+"/msi_irqs/20", "msix", a+"/msi_irqs/21", "msix", a+"/msi_irqs/22", "msix",
		"sys/kernel/irq/20/per_cpu_count", "1,2,4,8,16,32", "sys/kernel/irq/21/per_cpu_count", "100,0,0,0,0,1000",
		b+"/local_cpulist", "0-5", b+"/msi_irqs/30", "msix", "sys/kernel/irq/30/per_cpu_count", "1,1,1,1,1,1",
		c+"/local_cpulist", "", c+"/msi_irqs/40", "msix",
		"sys/class/infiniband/mlx5_3/node_guid", "0000:0000:0000:0001",
		"sys/class/infiniband/mlx5_4/device/local_cpulist", "0-5", "sys/class/infiniband/mlx5_4/device/msi_irqs/50", "msix",
	)+"-- sys/class/infiniband/mlx5_4/device/physfn -> ../0000:17:00.0 --\n-- sys/class/infiniband/mlx5_5/device/msi_irqs/60 --\n"+
		"-- sys/class/infiniband/mlx5_5/device/local_cpulist --\n0\n-- sys/kernel/irq/60/per_cpu_count !EACCES --\n")
	want := []hostdata.DeviceInterrupts{
		{Device: "mlx5_0", CPUs: "0-1,4", Local: 119, Total: 1163, Elsewhere: true},
		{Device: "mlx5_1", CPUs: "0-5", Local: 6, Total: 6},
		{Device: "mlx5_5", CPUs: "0", Unread: "permission"},
	}
	if got := readInterrupts(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string]int{
		"0": 1, "0-55,112-167": 112, "": -1, "x": -1, "3-": -1, "5-3": 0, "0-99999": -1,
	} {
		got, err := parseCPUs(text)
		if n := len(got); err != nil && want >= 0 || err == nil && n != want {
			t.Errorf("%q: %d CPUs, %v", text, n, err)
		}
	}
}

func TestJobSettings(t *testing.T) {
	row := func(domain, setting, job, found string, state hostdata.SetupState) hostdata.SetupRow {
		return hostdata.SetupRow{Domain: domain, Setting: setting, Object: job, Found: found, State: state}
	}
	got := jobSettings([]hostdata.SetupRow{
		row("job", "nccl_timeout", "slurm/7", "14", hostdata.SetupDiffers),
		row("job", "nccl_timeout", "slurm/8", "20", hostdata.SetupOK),
		row("job", "nccl_topo_file", "slurm/7", "/home/alice/a.xml", hostdata.SetupDiffers),
		row("job", "nccl_topo_file", "slurm/7", "/home/alice/b.xml", hostdata.SetupDiffers),
		row("job", "nccl_gid_index", "slurm/8", "", hostdata.SetupUnknown),
		row("pcie", "acs", "mlx5_0", "on", hostdata.SetupDiffers),
	})
	want := [][]string{{"slurm/7", "nccl_timeout", "14"}, {"slurm/7", "nccl_topo_file", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestMADFlags: only flags that are set need management datagrams: auto uses them where it can, and a replay has no
// flags.
func TestMADFlags(t *testing.T) {
	const counters, neighbours = "--collector.infiniband.mad=on", "--collector.neighbour.subnet"
	for _, c := range []struct {
		mode shared.MADCounters
		ask  bool
		want []string
	}{
		{shared.CountersOfFiles, false, nil},
		{shared.CountersIfPermitted, false, nil},
		{shared.CountersRecorded, true, nil},
		{shared.CountersByMAD, false, []string{counters}},
		{shared.CountersIfPermitted, true, []string{neighbours}},
		{shared.CountersByMAD, true, []string{counters, neighbours}},
	} {
		with := shared.NewState(shared.Options{MADCounters: c.mode, AskSubnet: c.ask})
		if got := madFlags(with); !slices.Equal(got, c.want) {
			t.Errorf("%d, %v: %q", c.mode, c.ask, got)
		}
	}
	c := New(shared.NewState(shared.Options{AskSubnet: true}))
	n := &snapshot.Node{}
	c.Read(t.Context(), collectortest.ReadsOf(t, "").Host, n, func(error) {})
	if n.Setup == nil || !slices.Equal(n.Setup.MADFlags, []string{neighbours}) {
		t.Errorf("%+v", n.Setup)
	}
}
