package setup

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/setup/values"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// Launchers are the services whose limits jobs inherit, by process name. kubelet is none: the container runtime starts
// its containers.
var Launchers = []string{"slurmd", "containerd", "crio", "dockerd", "pbs_mom", "sshd"}

// unlimited is the value without a limit.
const unlimited = "unlimited"

var limitsChecks = []Check{
	{
		ID: "uverbs_permissions", Domain: Limits, Name: "permissions of the RDMA device nodes",
		Read:   "mode and group of /dev/infiniband/uverbs*; user and groups of jobs in /proc/PID/status",
		Wanted: "0666, the default of the kernel, or 0660 with the group of the users of jobs, not root",
		Why:    "Jobs of users without the permission find no RDMA device, and NCCL uses TCP.",
		Before: "for a group only: add the users to it; GROUP=\"rdma\", MODE=\"0660\"",
		Remedy: `printf 'KERNEL=="uverbs*", SUBSYSTEM=="infiniband_verbs", MODE="{wanted}"\n' > /etc/udev/rules.d/99-rdma-uverbs.rules; ` +
			"udevadm control --reload; udevadm trigger --subsystem-match=infiniband_verbs --action=change",
		Source: "Linux: drivers/infiniband/core/uverbs_main.c, uverbs_devnode; rdma-core: udev.md",
		find:   findPermissions,
	},
	{
		ID: "memlock_of_launchers", Domain: Limits, Name: "locked memory limit of services that start jobs",
		Read:   "/proc/PID/limits of " + strings.Join(Launchers, ", "),
		Wanted: "unlimited; sshd only where jobs run outside of a scheduler",
		Why:    "Jobs inherit the limit unless the service sets another one: registration of memory with RDMA devices fails.",
		Remedy: launcherRemedy("slurmd"),
		Source: "NVIDIA, NCCL: troubleshooting, memory limits; Slurm: FAQ, memory locked limits; rdma-core: libibverbs README",
		find:   findLaunchers,
	},
	{
		ID: "memlock_of_jobs", ofJob: true, Domain: Limits, Name: "locked memory limit of jobs",
		Read:   "/proc/PID/limits of processes that hold an RDMA device (CAP_SYS_PTRACE to find them)",
		Wanted: "unlimited",
		Why:    "Registration of more memory than the limit fails, unless the process has CAP_IPC_LOCK.",
		Remedy: "start jobs with ulimit -l unlimited",
		Source: "NVIDIA, NCCL: troubleshooting, memory limits; getrlimit(2), RLIMIT_MEMLOCK",
		find:   findJobLimits,
	},
}

func findPermissions(m *machine) []finding {
	if m.Modules == nil {
		return nil
	}
	i := slices.IndexFunc(m.Modules.Nodes, func(c hostdata.NodeClass) bool { return c.Class == "uverbs" && c.Mode != "" })
	if i < 0 { // no node, or a recording of an earlier version
		return nil
	}
	n := m.Modules.Nodes[i]
	f := finding{
		found: n.Mode, want: "0666", unknown: "the group of the nodes was not recorded", basis: hostdata.SetupGuide,
	}
	modes := strings.Split(n.Mode, ",")
	switch {
	case n.Mode == f.want:
		f.meets = true
	case !slices.ContainsFunc(modes, func(mode string) bool { return mode != "0666" && mode != "0660" }):
		if site, _ := m.siteValue("uverbs_permissions", f.object, func(v string) bool { return v != "" }); site != "" {
			break
		}
		group := "group " + values.List(n.Groups)
		f.evidence = "the nodes belong to " + group
		outside, unknown := m.outsiders()
		switch {
		case n.Groups == nil:
			f.found = ""
		case slices.Contains(n.Groups, 0):
			f.evidence = "the nodes belong to group 0, root"
		case len(outside) > 0:
			f.evidence = "not in " + group + " of the nodes: " + strings.Join(outside, ", ")
		case len(unknown) > 0:
			f.found, f.unknown = "", "not known whether in "+group+" of the nodes: "+strings.Join(unknown, ", ")
		default:
			f.want, f.meets = f.found, true
		}
	}
	return []finding{f}
}

// outsiders returns the jobs with NCCL whose users are not in the group of the RDMA device nodes, and those of which it
// is not known. A process with an open node had the permission, and containers have nodes of their own.
func (m *machine) outsiders() (outside, unknown []string) {
	if len(m.computeDevices()) == 0 {
		return nil, nil
	}
	for _, j := range m.jobs {
		if !j.HasNCCL || j.Plugin || j.Cut || len(j.Verbs) > 0 || j.Container != "" || j.ownInterfaces() ||
			j.env.Integer("NCCL_IB_DISABLE", 0) != 0 || j.env["NCCL_NET"] == "Socket" {
			continue
		}
		who := "the user of " + j.name
		if j.User != "" {
			who = "user " + j.User + " of " + j.name
		}
		switch {
		case j.MayOpen == nil:
			unknown = append(unknown, who)
		case !*j.MayOpen:
			outside = append(outside, who)
		}
	}
	slices.Sort(outside)
	slices.Sort(unknown)
	return slices.Compact(outside), slices.Compact(unknown)
}

// limitText returns a limit of locked memory as a value: bytes, or unlimited; empty: unknown.
func limitText(bytes *uint64, none bool) string {
	if bytes != nil {
		return strconv.FormatUint(*bytes, 10)
	}
	if none {
		return unlimited
	}
	return ""
}

// limited returns the finding of a limit.
func limited(name string, bytes *uint64, none bool) finding {
	f := finding{
		object: object{name: name}, found: limitText(bytes, none), want: unlimited, meets: none, basis: hostdata.SetupGuide,
	}
	if bytes != nil {
		f.evidence = f.found + " bytes are " + values.Binary(*bytes)
	}
	return f
}

// launcherRemedy sets the limit of a service. Sessions inherit that of sshd unless pam_limits(8) sets another one, and
// containers may have one by --ulimit.
func launcherRemedy(name string) string {
	dir := "/etc/systemd/system/" + name + ".service.d"
	return "mkdir -p " + values.Shell(dir) +
		`; printf '[Service]\nLimitMEMLOCK=infinity\n' > ` + values.Shell(dir+"/memlock.conf") +
		"; systemctl daemon-reload; systemctl restart " + values.Shell(name) + caution(name)
}

// caution returns the effect of a service restart on its jobs, as a comment for the command. Running jobs keep their
// limit.
func caution(name string) string {
	switch name {
	case "pbs_mom":
		return " # drain the node first: a restart can end its jobs"
	case "dockerd":
		return " # drain the node first: without live-restore a restart stops its containers"
	}
	return " # drain the node first; what runs keeps its limit"
}

func findLaunchers(m *machine) (out []finding) {
	if len(m.devices) == 0 {
		return nil
	}
	for _, l := range m.Setup.Launchers {
		if slices.Contains(Services, l.Name) { // it starts no jobs
			continue
		}
		// The limit of sshd is that of sessions only: it counts where jobs are started by ssh.
		if l.Name == "sshd" &&
			!slices.ContainsFunc(m.jobs, func(j jobProcess) bool { return j.Job == "" && len(j.Verbs) > 0 }) {
			continue
		}
		f := limited(l.Name, l.LockedMemory, l.Unlimited)
		f.unknown, f.remedy = "limits of "+l.Name+": "+cmp.Or(l.Unread, "no limit of locked memory in the file"),
			launcherRemedy(l.Name)
		out = append(out, f)
	}
	if why := m.Setup.LaunchersUnread; why != "" {
		out = append(out,
			finding{want: unlimited, basis: hostdata.SetupGuide, unknown: "search of /proc for the services: " + why})
	}
	return out
}

// jobProcess is a process of a job.
type jobProcess struct {
	*accel.Process
	name string
	env  nccl.Env // settings of NCCL in force
}

// ncclConf has the settings of NCCL of the host. Those of Process.Conf include it, if the files of the process could
// be read.
const ncclConf = "etc/nccl.conf"

// allJobs returns the processes on this host with NCCL or an RDMA device.
func (m *machine) allJobs() (out []jobProcess) {
	if m.GDR == nil {
		return nil
	}
	text, _ := m.files.Text(ncclConf)
	host := nccl.ParseConf(text)
	for i := range m.GDR.Processes {
		p := &m.GDR.Processes[i]
		lower := nccl.Env(p.Conf)
		if p.Conf == nil {
			lower = host
		}
		out = append(
			out,
			jobProcess{p, cmp.Or(p.Job, p.Command, "process "+strconv.Itoa(p.PID)), nccl.Env(p.Env).With(lower)},
		)
	}
	return out
}

// joined returns findings of processes, one for each job and value: it differs if it does for one process.
func joined(all []finding) (out []finding) {
	for _, f := range all {
		i := slices.IndexFunc(out, func(o finding) bool { return o.String() == f.String() && o.found == f.found })
		switch {
		case i < 0:
			out = append(out, f)
		case out[i].meets && !f.meets:
			out[i] = f
		case !f.meets && !strings.Contains(out[i].evidence, f.evidence):
			out[i].evidence += "; " + f.evidence
			out[i].contradicts = out[i].contradicts || f.contradicts
		}
	}
	return out
}

func findJobLimits(m *machine) (out []finding) {
	for _, j := range m.jobs {
		if len(j.Verbs) == 0 {
			continue
		}
		f := limited(j.name, j.LockedMemory, j.Unlimited)
		f.unknown = "/proc/PID/limits of the process was not readable, or was recorded by an earlier version"
		if strings.HasPrefix(j.Job, "slurm/") {
			f.remedy = launcherRemedy("slurmd") + "; set PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"
		} else if strings.HasPrefix(j.Job, "kubernetes/") {
			f.remedy = launcherRemedy("containerd")
		}
		out = append(out, f)
	}
	return joined(out)
}
