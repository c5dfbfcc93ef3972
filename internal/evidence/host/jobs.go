package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// jobFaults are those of jobs.
var jobFaults = fault.Kinds{
	"job_slow/imbalance":   {Write: portUneven},
	"job_slow/port_unused": {Write: portUnused},
	"job_stalled/fault":    {Write: jobStalled, OfHost: true},
	"job_stalled/no_fault": {Write: jobStalled, OfHost: true},
}

// ofJob are the matchers of a job's series.
func ofJob(f *fault.Fault) string {
	return fmt.Sprintf("on_host=%q,scheduler=%q,job_id=%q", f.Labels["on_host"], f.Labels["scheduler"], f.Labels["job_id"])
}

func jobStalled(f *fault.Fault) fault.Text {
	ports := f.Rows(`port:rdma_job_traffic:silent{`+ofJob(f)+`}`, "device", "port")
	slices.SortStableFunc(ports, func(a, b fault.Sample) int { return cmp.Compare(a.Value, b.Value) })
	faults := f.Rows(`max by (alertname, device, port, gpu) (ALERTS{alertstate="firing",severity=~"critical|warning",device!=""} `+
		`and on (device, port) rdma:job:part{`+ofJob(f)+`})`, "device", "port", "gpu")
	var e fault.Lines
	for _, p := range ports {
		e.Add("Port "+fault.PortName(p), "silent since "+clock(p.Value)+".")
	}
	for _, g := range f.Rows(`gpu:rdma_job:waits{`+ofJob(f)+`}`, "gpu") {
		peak := f.Of(g).Text(`max(gpu:rdma_job:peak{`+ofJob(f)+`,$gpu})`, " (at work %.0f W)", "")
		e.Add("GPU "+g.Labels["gpu"], "waits at full utilization, "+fault.Whole(g.Value)+" W"+peak+".")
	}
	for _, a := range faults {
		e.Add("Fault", a.Labels["alertname"]+" on "+fault.PortName(a)+".")
	}
	verdict, action := "no fault on "+among(ports), "Look for a rank that has ended or waits, on the other hosts of the "+
		"job too: data loader, storage, an exception."
	if f.Labels["reason"] == "fault" {
		verdict = "with faults on its ports or GPUs"
		action = "Follow the alerts on its ports and GPUs. If the job does not end, stop it, and start it again without " +
			"these hosts."
	}
	return fault.Text{
		Summary: "Job " + f.Labels["job_id"] + ": stalled, " + verdict,
		Description: "All ports of the job on this host have moved less than 1 Mb/s for 5m, after 10m above 100 Mb/s, and " +
			"all of its GPUs wait at full utilization and less than half of their power at work. The job makes no progress.",
		Evidence:    e,
		Diagnose:    "rdma_exporter job",
		Action:      action,
		DrainReason: "No fault of the host is the cause as far as it is known.",
	}
}

// among says of how many ports.
func among(ports []fault.Sample) string {
	if len(ports) == 1 {
		return "its port"
	}
	return "any of " + words.Count(len(ports), "port")
}

// clock is a time of the day.
func clock(seconds float64) string { return time.Unix(int64(seconds), 0).UTC().Format("15:04 UTC") }

func portUnused(f *fault.Fault) fault.Text {
	var e fault.Lines
	e.Add("Silent", f.Text(`max(port:rdma_job:unused{$port}) / 60`, "for %.0fm.", ""))
	addRates(f, &e, " > 125e6")
	return fault.Text{
		Summary: f.HostPort() + ": back for 20m, and its job does not use it",
		Description: "The port was down while the job ran, has been ACTIVE again for 20m, and moves nothing, while other " +
			"ports of the job do. NCCL returns to a port that failed from 2.30 on, with NCCL_IB_RESILIENCY_PORT_RECOVERY=1.",
		Evidence:    e,
		Diagnose:    "rdma_exporter job",
		Action:      "Restart the job at its next checkpoint.",
		DrainReason: "The job runs on over its other ports.",
	}
}

func portUneven(f *fault.Fault) fault.Text {
	var e fault.Lines
	addRates(f, &e, "")
	return fault.Text{
		Summary: f.HostPort() + ": carries more than twice as much of its job as the other ports",
		Description: "For 15m the port has moved more than twice the data of the median port of the job on this host. The " +
			"job waits for this port if its ranks move the same data.",
		Evidence: e,
		Diagnose: "rdma_exporter job",
		Action: "Check the members of a bond and NCCL_IB_HCA. If the job loads its ports unevenly by design (pipeline or " +
			"expert parallelism), no action is required.",
		DrainReason: "The job runs.",
	}
}

// addRates adds the ports of jobs with what they move, as far as it meets a condition.
func addRates(f *fault.Fault, e *fault.Lines, condition string) {
	ports := `max by (device, port) (port:rdma_job_traffic:rate5m{$host}` + condition + `)`
	for _, r := range f.Rows(ports, "device", "port") {
		e.Add("Port "+fault.PortName(r), fault.Plain(r.Value*8/1e9)+" Gb/s.")
	}
}
