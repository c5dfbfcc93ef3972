package proc

import (
	"strings"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/words"
)

// Names in paths of control groups. Slurm: /system.slice/slurmstepd.scope/job_77/step_0/user/task_0, with version 1 of
// control groups /slurm/uid_1001/job_77/step_batch. The kubelet:
// /kubepods.slice/kubepods-podUID.slice/cri-containerd-ID.scope with "_" in the UID, or /kubepods/burstable/podUID/ID;
// the UID of a static pod is a hash without dashes.
var (
	slurmJob  = lazy.Regexp(`/job_([0-9]+)(?:/step_([0-9a-z]{1,16}))?(?:/|$)`)
	podUID    = lazy.Regexp(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32}\b)`)
	container = lazy.Regexp(`[/:-]([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?(?:/|$)`)
	unit      = lazy.Regexp(`/([A-Za-z0-9:_.\\@-]{1,255}\.(?:service|scope))(?:/|$)`)

	slurmID = lazy.Regexp(`^[0-9]{1,10}(_[0-9]{1,10})?$`)
)

// Forms of the fields of a process that are from its control group.
var (
	jobForm       = lazy.Regexp(`^(slurm/[0-9]{1,255}(_[0-9]{1,10})?|kubernetes/([0-9a-f-]{36}|[0-9a-f]{32}))?$`)
	stepForm      = lazy.Regexp(`^[0-9a-z]{0,16}$`)
	containerForm = lazy.Regexp(`^([0-9a-f]{12})?$`)
	unitForm      = lazy.Regexp(`^([A-Za-z0-9:_.\\@-]{1,255}\.(service|scope)|user\.slice)?$`)
	networkForm   = lazy.Regexp(`^[0-9]{0,20}$`)
	userForm      = lazy.Regexp(`^[0-9]{0,10}$`)
)

// jobNameLength limits the name of a job, which its owner chooses.
const jobNameLength = 128

// cgroupPlace is where a control group is. Schedulers set it; a process cannot change it without their permissions.
type cgroupPlace struct{ job, step, container, unit string }

// placeOf parses /proc/PID/cgroup: a line HIERARCHY:CONTROLLERS:PATH for each hierarchy. Without a job in the control
// group, that in the environment counts.
func placeOf(env map[string]string, cgroup []byte) (out cgroupPlace) {
	for line := range strings.Lines(string(cgroup)) {
		line = strings.TrimSpace(line)
		if m := slurmJob().FindStringSubmatch(line); m != nil && out.job == "" {
			out.job, out.step = "slurm/"+m[1], m[2]
		}
		if m := podUID().FindStringSubmatch(line); m != nil && out.job == "" {
			out.job = "kubernetes/" + strings.ReplaceAll(m[1], "_", "-")
		}
		if m := container().FindAllStringSubmatch(line, -1); m != nil && out.container == "" {
			out.container = m[len(m)-1][1]
		}
		if out.unit == "" {
			out.unit = unitOf(line)
		}
	}
	if id := env["SLURM_JOB_ID"]; out.job == "" && slurmID().MatchString(id) {
		out.job = "slurm/" + id
	}
	if out.job != "" || out.container != "" {
		out.unit = ""
	}
	return out
}

// unitOf returns the innermost systemd unit of a path. Units of a user's own manager have names that the user chooses:
// they are user.slice.
func unitOf(path string) string {
	found := unit().FindAllStringSubmatch(path, -1)
	switch {
	case len(found) == 0:
		return ""
	case !strings.Contains(path, "/user.slice/"):
		return found[len(found)-1][1]
	case strings.HasPrefix(found[0][1], "session-"):
		return found[0][1]
	}
	return "user.slice"
}

// place sets where a process runs, and where permitted whose job it is.
func (p *processTable) place(out *accel.Process, cgroup, environ, status []byte) {
	at := placeOf(out.Env, cgroup)
	out.Job, out.Step, out.Container, out.Unit = at.job, at.step, at.container, at.unit
	if p.names {
		out.JobName = words.Cut(printable(variable(environ, "SLURM_JOB_NAME")), jobNameLength)
		out.User = uidOf(status)
	}
}

// withoutNames returns processes without the names of jobs and users.
func withoutNames(found []accel.Process) []accel.Process {
	for i := range found {
		found[i].JobName, found[i].User = "", ""
	}
	return found
}

// isPlaced reports whether the fields that place sets have the form that it gives them.
func isPlaced(p *accel.Process) bool {
	return jobForm().MatchString(p.Job) && stepForm().MatchString(p.Step) && containerForm().MatchString(p.Container) &&
		unitForm().MatchString(p.Unit) &&
		userForm().MatchString(p.User) && networkForm().MatchString(p.Network) && p.Netdevs == possibleNames(p.Netdevs) &&
		len(p.JobName) <= jobNameLength && p.JobName == printable(p.JobName)
}
