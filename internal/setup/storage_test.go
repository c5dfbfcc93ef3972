package setup

import (
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// gdsText is the driver's text, of statistics version 4.
const gdsText = `GDS Version: 1.14.0.30 
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2.25.7)
Mellanox PeerDirect Supported: True
IO stats: Enabled, peer IO stats: Disabled
Logging level: warn

Active Shadow-Buffer (MiB): 128
Active Process: 8
Batches				: n=0 ok=0 err=0 Avg-Submit-Latency(usec)=0
Reads				: n=81920 ok=81920 err=0 readMiB=81920 io_state_err=0
Reads				: Bandwidth(MiB/s)=5120 Avg-Latency(usec)=190
Sparse Reads		        : n=12 io=0 holes=0 pages=0 
Writes				: n=0 ok=0 err=0 writeMiB=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0
Writes				: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0`

func TestStorage(t *testing.T) {
	base := func() *snapshot.Node {
		return &snapshot.Node{
			GDR: &accel.GDR{GPUs: []accel.GDRGPU{{Index: "0"}}},
			Setup: &hostdata.Setup{
				Files: map[string]hostdata.SetupFile{"proc/sys/kernel/osrelease": {Text: "6.8.0-49-generic"}},
			},
		}
	}
	text := func(change ...string) func(*snapshot.Node) {
		return addFiles(gdsState, "live", gdsStats, strings.NewReplacer(change...).Replace(gdsText))
	}
	const here = "lib/modules/6.8.0-49-generic/updates/dkms"
	checkRows(t, "gds_loaded", base, []rowCase{
		{name: "not installed"},
		{name: "no GPUs", node: both(addFiles(here, "nvidia-fs.ko"), func(n *snapshot.Node) { n.GDR.GPUs = nil })},
		{name: "as wanted", node: text(), want: []string{`nvidia_fs ok "yes" want "yes" by machine`}},
		{name: "differs", node: addFiles(here, "nvidia-fs.ko.zst"), want: []string{
			`nvidia_fs differs/info "no" want "yes" by machine; the driver is installed; set: modprobe nvidia_fs; echo nvidia_fs > /etc/modules-load.d/nvidia-fs.conf`,
		}},
		{name: "built for another kernel", node: addFiles("lib/modules/6.8.0-31-generic/updates/dkms", "nvidia-fs.ko.zst"), want: []string{
			`nvidia_fs differs/info "no" want "yes" by machine; the driver is installed, but not built for the running kernel; ` +
				`set: dkms autoinstall -k 6.8.0-49-generic; modprobe nvidia_fs; echo nvidia_fs > /etc/modules-load.d/nvidia-fs.conf`,
		}},
		{name: "unreadable", node: addFiles(here, "nvidia-fs.ko.zst", gdsState, "!io"), want: []string{`nvidia_fs unknown "" want "yes" by machine; /sys/module/nvidia_fs/initstate: io`}},
		{name: "not used on this site", node: addFiles(gdsTree, "2.25.7"), site: "no", want: []string{`nvidia_fs ok "no" want "no" by site; the driver is installed`}},
	})
	checkRows(t, "gds_version", base, []rowCase{
		{name: "not loaded", node: addFiles(gdsTree, "2.25.7")},
		{name: "nothing to compare with", node: text()},
		{name: "as wanted", node: both(text(), addFiles(gdsTree, "2.9.1\n2.25.7\nkernel-6.8.0-49-generic-x86_64")), want: []string{
			`nvidia_fs ok "2.25.7" want "2.25.7" by machine; /var/lib/dkms/nvidia-fs/2.25.7`,
		}},
		{name: "differs", node: both(text(), addFiles(gdsTree, "2.28.4")), want: []string{
			`nvidia_fs differs/info "2.25.7" want "2.28.4" by machine; /var/lib/dkms/nvidia-fs/2.28.4; set: once no process has a file open by GPUDirect Storage ` +
				`(Active Process: 0 in /proc/driver/nvidia-fs/stats): modprobe -r nvidia_fs; modprobe nvidia_fs`,
		}},
		{name: "unreadable", node: addFiles(gdsStats, "!permission"), want: []string{`nvidia_fs unknown "" want "" by machine; /proc/driver/nvidia-fs/stats: permission`}},
		{name: "garbled", node: both(addFiles(gdsStats, "x"), addFiles(gdsTree, "2.28.4")), want: []string{`nvidia_fs unknown "" want "2.28.4" by machine; /proc/driver/nvidia-fs/stats has no line NVFS Driver`}},
		{name: "of the site", node: text(), site: "2.2[5-9].*", want: []string{`nvidia_fs ok "2.25.7" want "2.2[5-9].*" by site`}},
	})
	checkRows(t, "gds_compat_reads", base, []rowCase{
		{name: "not loaded"},
		{name: "not used", node: text("Process: 8", "Process: 0", "n=81920", "n=0")},
		{name: "as wanted", node: text(), want: []string{`nvidia_fs ok "direct" want "direct" by machine`}},
		{name: "only writes", node: text("n=81920", "n=0", ": n=0 ok=0 err=0 writeMiB", ": n=3 ok=3 err=0 writeMiB"), want: []string{`nvidia_fs ok "direct" want "direct" by machine`}},
		{name: "differs", node: text("n=81920", "n=0"), want: []string{
			`nvidia_fs differs/info "none" want "direct" by machine; 8 processes have opened the driver, 0 reads and 0 writes since it was loaded; set: gdscheck -p; set "allow_compat_mode": false in /etc/cufile.json to make the reason visible`,
		}},
		{name: "not counted", node: text("IO stats: Enabled", "IO stats: Disabled"), want: []string{
			`nvidia_fs unknown "" want "direct" by machine; IO statistics of the driver are disabled (/sys/module/nvidia_fs/parameters/rw_stats_enabled)`,
		}},
		{name: "accepted by the site", node: text("n=81920", "n=0"), site: Any},
	})
}
