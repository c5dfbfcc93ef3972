package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
)

// Job is the command job, with its flags.
type Job struct {
	name   string // of the job; empty: all
	json   bool
	raw    bool
	nccl   bool
	ras    string // address; empty: the job's
	dumps  string // directory of NCCL's Inspector plugin; empty: none
	checks Check
}

// Flags adds the flags.
func (j *Job) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of text.").BoolVar(&j.json)
	a.Flag("nccl", "Ask NCCL's RAS service (NCCL 2.24 and later) about the job, for at most 12s. It is reached in the network namespace of this command only, and not in a replay.").Default("true").BoolVar(&j.nccl)
	a.Flag("nccl-ras",
		"Address of NCCL's RAS service. Default: NCCL_RAS_ADDR of the job if that is an address of this host, else localhost:28028.").
		PlaceHolder("HOST:PORT").StringVar(&j.ras)
	a.Flag("nccl-dumps",
		"Directory with the JSON dumps of the Inspector plugin of NCCL or RCCL (NCCL_INSPECTOR_DUMP_DIR): prints the bus bandwidths of the ranks on this host.").
		PlaceHolder("DIR").StringVar(&j.dumps)
	a.Flag("raw", "Print NCCL's answer unchanged too.").BoolVar(&j.raw)
	j.checks.sourceFlags(a)
	j.checks.timeout = 10 * time.Second
	a.Arg("JOB", "Job to show: a job ID of Slurm, the UID of a pod, or the first column of the output. Default: all jobs on this host.").StringVar(&j.name)
}

// JobReport is what job prints, as JSON or a table.
type JobReport struct {
	Host   string    `json:"host"`
	Replay string    `json:"replay,omitempty"`
	Time   time.Time `json:"time"` // of the findings
	Jobs   []job.Row `json:"jobs"`
	// NCCL is an answer that cannot be assigned: no process with NCCL is visible.
	NCCL *job.NCCL `json:"nccl,omitempty"`
	// Findings are those of the host itself. Other is the number of those on objects that no job uses. FindingsError is
	// why they are unknown.
	Findings      []job.Finding `json:"host_findings"`
	Other         int           `json:"other_findings"`
	FindingsError string        `json:"findings_error,omitempty"`
	// Source is where the findings are from, and FindingsHost the label instance there.
	Source       *check.Source `json:"findings_source"`
	FindingsHost string        `json:"findings_host"`
}

// Run runs the command.
func (j *Job) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	if err := j.check(c); err != nil {
		return command.Usage(err)
	}
	seen, _, err := c.Observe(ctx, std.Log, "infiniband", "gpu", "gdr")
	if err != nil {
		return command.Usage(err)
	}
	out := JobReport{Host: seen.Host, Replay: seen.Replay, Jobs: job.Rows(seen.Node()), Findings: []job.Finding{}}
	if out.Jobs, err = selected(out.Jobs, j.name); err != nil {
		return command.Usage(err)
	}
	findings, err := j.checks.findings(ctx, c, std.Err, std.Log)
	if err != nil {
		return command.Usage(err)
	}
	out.addFindings(&findings)
	if err := errors.Join(j.askNCCL(ctx, c, &out), j.readDumps(ctx, c, &out)); err != nil {
		return command.Usage(err)
	}
	code := command.OK
	if out.FindingsError != "" {
		code = check.ExitUnknown
	}
	return code, command.Print(std, j.json, out, jobMarks, func(w io.Writer) error {
		return out.print(w, j.raw, std.Style)
	})
}

func (j *Job) check(c *machine.Config) error {
	_, wrongRAS := job.RASAddress(j.ras)
	return cmp.Or(j.checks.check(c), command.Checks{
		{j.ras != "" && !j.nccl, fmt.Errorf("--nccl-ras=%s: has no effect with --no-nccl", j.ras)},
		{wrongRAS != nil, fmt.Errorf("--nccl-ras=%s: %w", j.ras, wrongRAS)},
		{j.dumps != "" && c.Replay != "", errors.New("--nccl-dumps: not with --replay, whose processes are those of another host")},
		{j.raw && j.json, errors.New("--raw and --json are mutually exclusive")},
	}.First())
}

// selected returns the rows of the job with a name; all without one.
func selected(rows []job.Row, name string) ([]job.Row, error) {
	if name == "" {
		return rows, nil
	}
	var known []string
	for i := range rows {
		if r := &rows[i]; r.ID == name || r.Key() == name {
			return rows[i : i+1], nil
		}
		known = append(known, rows[i].Key())
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s: no such job: no process uses an RDMA device, or processes are not visible (needs CAP_SYS_PTRACE)", name)
	}
	return nil, fmt.Errorf("%s: no such job on this host: %s", name, strings.Join(known, ", "))
}

// addFindings assigns findings to the jobs whose ports and GPUs they concern. A finding without a port is of the whole
// device.
func (r *JobReport) addFindings(report *check.Report) {
	r.Time, r.FindingsError, r.Source, r.FindingsHost = report.Time, report.Error, report.Source, report.Host
	for i := range report.Findings {
		f := &report.Findings[i]
		short := job.Finding{
			Alert: f.Alert, Severity: f.Severity, Drain: f.Drain, State: f.State, Since: f.Since,
			Labels: f.Labels, Summary: f.Summary,
		}
		if f.Labels["device"]+f.Labels["UUID"]+f.Labels["gpu"]+f.Labels["job_id"] == "" {
			r.Findings = append(r.Findings, short)
			continue
		}
		used := false
		for k := range r.Jobs {
			if row := &r.Jobs[k]; row.Uses(f.Labels) {
				used = true
				row.Findings = append(row.Findings, short)
			}
		}
		if !used {
			r.Other++
		}
	}
}
