package setup

import (
	"regexp"
	"slices"

	"rdma_exporter/internal/setup/software"
	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot/hostdata"
)

const (
	gdsModule = "nvidia_fs"
	gdsState  = "sys/module/nvidia_fs/initstate"
	gdsStats  = "proc/driver/nvidia-fs/stats"
	gdsTree   = "var/lib/dkms/nvidia-fs" // a directory for each version that DKMS has
	loadGDS   = "modprobe nvidia_fs; echo nvidia_fs > /etc/modules-load.d/nvidia-fs.conf"
)

var storageFiles = []string{gdsState, gdsStats, gdsTree + "/"}

var storageChecks = []Check{
	{
		ID: "gds_loaded", Domain: Storage, Name: "GPUDirect Storage driver",
		Read:   "/sys/module/nvidia_fs; /lib/modules/*/{updates,updates/dkms,extra}",
		Wanted: "loaded on hosts with GPUs, if it is installed",
		Why:    "The cuFile library reads by way of host memory (compatibility mode), unless the kernel has peer-to-peer DMA of NVMe.",
		Remedy: loadGDS,
		Source: "NVIDIA, GPUDirect Storage: installation; cuFile compatibility mode",
		find:   findGDSLoaded,
	},
	{
		ID: "gds_version", Domain: Storage, Name: "version of the GPUDirect Storage driver",
		Read:   "/proc/driver/nvidia-fs/stats, NVFS Driver; /var/lib/dkms/nvidia-fs",
		Wanted: "the installed version",
		Why:    "The driver of before the last upgrade is loaded, and the cuFile library may need a newer one.",
		Remedy: "once no process has a file open by GPUDirect Storage (Active Process: 0 in /proc/driver/nvidia-fs/stats): modprobe -r nvidia_fs; modprobe nvidia_fs",
		Source: "dkms(8); NVIDIA, GPUDirect Storage: release notes",
		find:   findGDSVersion,
	},
	{
		ID: "gds_compat_reads", ofJob: true, Domain: Storage, Name: "reads and writes by GPUDirect Storage",
		Read:   "/proc/driver/nvidia-fs/stats: Active Process, Reads, Writes; none counts those in compatibility mode",
		Wanted: "some since the driver was loaded, if processes have opened it",
		Why:    "Processes with the cuFile library open the driver and do not use it: it goes through host memory, or has not started.",
		Remedy: "gdscheck -p; set \"allow_compat_mode\": false in /etc/cufile.json to make the reason visible",
		Source: "NVIDIA, GPUDirect Storage: troubleshooting, cuFile compatibility mode",
		find:   findGDSReads,
	},
}

// Parts of /proc/driver/nvidia-fs/stats (gds-nvidia-fs, src/nvfs-stat.c, statistics version 4). Reads and writes are
// counted only with IO statistics enabled.
var (
	gdsDriver    = regexp.MustCompile(`(?m)^NVFS Driver\(version: ([0-9.]+)\)`)
	gdsProcesses = regexp.MustCompile(`(?m)^Active Process: ([0-9]+)`)
	gdsCounted   = regexp.MustCompile(`(?m)^IO stats: (Enabled|Disabled)`)
	gdsCount     = regexp.MustCompile(`(?m)^(?:Reads|Writes)\s*: n=([0-9]+)`)
)

func findGDSLoaded(m *machine) []finding {
	if m.GDR == nil || len(m.GDR.GPUs) == 0 {
		return nil
	}
	state, loaded := m.files.Text(gdsState)
	release, built := software.Release(m.files), software.Built(m.files)
	f := finding{
		object: object{name: gdsModule}, found: "no", want: "yes", basis: hostdata.SetupMachine,
		unknown: m.files.Unread(gdsState),
	}
	switch {
	case loaded && state == "live":
		f.found, f.meets = "yes", true
	case !software.IsBuilt(m.files, gdsModule) && len(m.files.Names(gdsTree)) == 0:
		return nil
	case f.unknown != "":
		f.found = ""
	case release != "" && len(built) > 0 && !slices.Contains(built[release], gdsModule):
		f.evidence = "the driver is installed, but not built for the running kernel"
		f.remedy = "dkms autoinstall -k " + values.Shell(release) + "; " + loadGDS
	default:
		f.evidence = "the driver is installed"
	}
	return []finding{f}
}

func findGDSVersion(m *machine) []finding {
	stats, read := m.files.Text(gdsStats)
	f := finding{object: object{name: gdsModule}, unknown: m.files.Unread(gdsStats), basis: hostdata.SetupMachine}
	if !read && f.unknown == "" { // not loaded
		return nil
	}
	if v := gdsDriver.FindStringSubmatch(stats); v != nil {
		f.found = v[1]
	} else if f.unknown == "" {
		f.unknown = "/" + gdsStats + " has no line NVFS Driver"
	}
	for _, version := range m.files.Names(gdsTree) {
		if version[0] >= '0' && version[0] <= '9' && (f.want == "" || values.Newer(version, f.want)) {
			f.want, f.because = version, "/"+gdsTree+"/"+version
		}
	}
	f.meets = f.found == f.want
	return []finding{f}
}

func findGDSReads(m *machine) []finding {
	stats, read := m.files.Text(gdsStats)
	if !read {
		return nil
	}
	processes := gdsProcesses.FindStringSubmatch(stats)
	if processes == nil || processes[1] == "0" {
		return nil
	}
	f := finding{object: object{name: gdsModule}, want: "direct", basis: hostdata.SetupMachine}
	if counted := gdsCounted.FindStringSubmatch(stats); counted == nil || counted[1] == "Disabled" {
		f.unknown = "IO statistics of the driver are disabled (/sys/module/nvidia_fs/parameters/rw_stats_enabled)"
		return []finding{f}
	}
	f.found, f.evidence = "none",
		processes[1]+" processes have opened the driver, 0 reads and 0 writes since it was loaded"
	for _, c := range gdsCount.FindAllStringSubmatch(stats, -1) {
		if c[1] != "0" {
			f.found, f.meets, f.evidence = "direct", true, ""
		}
	}
	return []finding{f}
}
