package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/words"
)

// textOf writes lines, and keeps the first error.
type textOf struct {
	w     io.Writer
	style terminal.Style
	err   error
}

func (t *textOf) Write(b []byte) (n int, err error) {
	if t.err == nil {
		n, t.err = t.w.Write(b)
	}
	return n, t.err
}

// line writes a line; what does not fit the width goes on below, deeper than the line begins.
func (t *textOf) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	prose := strings.TrimLeft(text, " \n")
	begin := text[:len(text)-len(prose)]
	indent := len(begin) - strings.LastIndexByte(begin, '\n') - 1
	fmt.Fprintln(t, begin+t.style.Wrap(prose, indent+4))
}

// printLibraries writes the libraries with their transports.
func printLibraries(w *textOf, r *job.Row) {
	for _, l := range r.Libraries {
		w.line("  Library %s: %s: %s (%s)", l.Library, l.Transport, l.Words, l.Reason)
		if l.Remedy != "" {
			w.line("    Action: %s", l.Remedy)
		}
	}
}

// list writes a named list, at most n of it.
func (t *textOf) list(name string, all []string, n int, none string) {
	text := strings.Join(all[:min(n, len(all))], ", ")
	if len(all) > n {
		text += fmt.Sprintf(", and %d more", len(all)-n)
	}
	t.line("  %s: %s", name, cmp.Or(text, none))
}

// sizeOf returns a number of bytes in words.
func sizeOf(n uint64) string {
	size, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; size >= 1024 && i < len(units)-1; i++ {
		size /= 1024
	}
	return strconv.FormatFloat(size, 'f', min(i, 1), 64) + " " + units[i]
}

func (r *JobReport) print(to io.Writer, raw bool, style terminal.Style) error {
	w := &textOf{w: to, style: style}
	if len(r.Jobs) == 0 {
		w.line("No job: no process uses an RDMA device, or processes are not visible (needs CAP_SYS_PTRACE).")
	}
	for i := range r.Jobs {
		if i > 0 {
			w.line("")
		}
		printRow(w, &r.Jobs[i], r.FindingsError, raw)
	}
	if r.NCCL != nil {
		w.line("")
		printNCCL(w, r.NCCL, "", raw)
	}
	for i, f := range r.Findings {
		if i == 0 {
			w.line("\nThe host itself:")
		}
		w.finding(&f)
	}
	if r.FindingsError == "" && r.Source.Kind == check.SourceDaemon {
		w.line("\nFindings are those of %s, from %s", words.HostName(r.FindingsHost), r.Source.URL)
	}
	if r.FindingsError != "" {
		w.line("\nFindings are unknown or incomplete: %s", r.FindingsError)
	}
	if r.Other > 0 {
		w.line("\n%s on objects that no job above uses: rdma_exporter check", words.Count(r.Other, "finding"))
	}
	if r.Replay != "" {
		w.line("\nReplay of %s", r.Replay)
	}
	return w.err
}

func (t *textOf) finding(f *job.Finding) { t.line("  %s %s: %s", f.Severity, f.Alert, f.Summary) }

// jobMarks colour what is wrong.
var jobMarks = terminal.Marks{
	{regexp.MustCompile(`^  (critical)\b`), terminal.Red},
	{regexp.MustCompile(`^  (warning)\b`), terminal.Yellow},
	{regexp.MustCompile(`^job .*: (\d+ .*)`), terminal.Red},
	{regexp.MustCompile(`^job .*: (no finding.*)`), terminal.Green},
	{regexp.MustCompile(`^(?:Replay of|  NCCL was not asked).*`), terminal.Grey},
}

// jobVerdict returns the state of a job in words: "1 of 8 ports down".
func jobVerdict(r *job.Row, unknown string) string {
	ports := map[string]map[string]bool{} // by what is wrong with them
	others := 0                           // findings on no port
	for _, f := range r.Findings {
		what, found := "with findings", false
		if f.Alert == "RDMAPortDown" {
			what = "down"
		}
		for _, p := range r.Ports {
			if one := (job.Row{Ports: []job.Port{p}}); one.Uses(f.Labels) {
				if ports[what] == nil {
					ports[what] = map[string]bool{}
				}
				ports[what][fmt.Sprintf("%s/%d", p.Device, p.Port)], found = true, true
			}
		}
		if !found {
			others++
		}
	}
	for name := range ports["down"] {
		delete(ports["with findings"], name)
	}
	var parts []string
	for _, what := range []string{"down", "with findings"} {
		if n := len(ports[what]); n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s %s", n, words.Count(len(r.Ports), "port"), what))
		}
	}
	switch {
	case others > 0 && len(parts) > 0:
		parts = append(parts, words.Count(others, "other finding"))
	case others > 0:
		parts = append(parts, words.Count(others, "finding"))
	case len(parts) == 0 && unknown != "":
		return "findings unknown"
	case len(parts) == 0:
		return "no finding on its ports and GPUs"
	}
	return strings.Join(parts, ", ")
}

// printRow writes a job.
func printRow(w *textOf, r *job.Row, unknown string, raw bool) {
	w.line("job %s: %s", r.Key(), jobVerdict(r, unknown))
	for i := range r.Findings {
		w.finding(&r.Findings[i])
	}
	var parts []string
	if r.Pod != "" {
		parts = append(parts, r.Namespace+"/"+r.Pod)
	}
	if r.Name != "" {
		parts = append(parts, r.Name)
	}
	if r.User != "" {
		parts = append(parts, "user "+r.User)
	}
	if len(r.Steps) > 0 {
		parts = append(parts, "step "+strings.Join(r.Steps, ", "))
	}
	var gpus, processes []string
	for _, g := range r.GPUs {
		gpus = append(gpus, g.GPU)
	}
	for _, p := range r.Processes {
		processes = append(processes, strings.TrimSpace(strconv.Itoa(p.PID)+" "+p.Command))
	}
	if len(parts) > 0 {
		w.line("  %s", strings.Join(parts, ", "))
	}
	w.list("GPUs", gpus, 16, "none")
	w.list("Processes", processes, 8, "not visible")
	for _, n := range r.Networks {
		w.list("Network namespace "+n.Namespace, n.Netdevs, 16, "netdevs unknown")
	}
	if len(r.Ports) == 0 {
		w.line("  Ports: none with registered memory or queue pairs")
	}
	printPorts(w, r)
	printLibraries(w, r)
	printNCCL(w, r.NCCL, "  ", raw)
	printDumps(w, r.Dumps)
}

// printPorts writes the table of ports.
func printPorts(w *textOf, r *job.Row) {
	if len(r.Ports) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	listsQPs := slices.ContainsFunc(r.Ports, func(p job.Port) bool { return p.QPs != nil })
	pairs := func(text string) string {
		if !listsQPs { // mlx5 and others list them by a firmware command each
			return ""
		}
		return text + "\t"
	}
	fmt.Fprintf(t, "  PORT\tPROCESSES\tREGISTERED\tREGIONS\t%sFINDINGS\n", pairs("QUEUE PAIRS"))
	for _, p := range r.Ports {
		registered, regions, qps, count := "unknown", "unknown", "unknown", 0
		if p.Regions != nil {
			registered, regions = sizeOf(p.RegionBytes), strconv.FormatUint(*p.Regions, 10)
		}
		if p.QPs != nil {
			qps = strconv.FormatUint(*p.QPs, 10)
		}
		one := job.Row{Ports: []job.Port{p}}
		for _, f := range r.Findings {
			if one.Uses(f.Labels) {
				count++
			}
		}
		fmt.Fprintf(t, "  %s/%d\t%d\t%s\t%s\t%s%d\n", p.Device, p.Port, p.Processes, registered, regions, pairs(qps), count)
	}
	_ = t.Flush()
}

// printNCCL writes the answer of NCCL.
func printNCCL(to *textOf, w *job.NCCL, indent string, raw bool) {
	switch {
	case !w.Asked:
		to.line("%sNCCL was not asked: %s", indent, w.Why)
		return
	case w.Answer == nil:
		to.line("%sNCCL: no answer: %s", indent, w.Why)
		return
	}
	a := w.Answer
	line := fmt.Sprintf("NCCL %s", a.NCCL)
	if a.Processes > 0 {
		line += fmt.Sprintf(": %s on %s, %s",
			words.Count(a.Processes, "process"), words.Count(a.Nodes, "node"), words.Count(a.GPUs, "GPU"))
	}
	line += fmt.Sprintf("; data collected in %.1fs", a.Seconds)
	if a.Timeouts > 0 {
		line += ", " + words.Count(a.Timeouts, "timeout")
	}
	to.line("%s%s", indent, line)
	if !w.Verified {
		to.line("%s  Not verified to be this job: the answer lists no process of it on this host", indent)
	}
	for _, g := range a.Communicators {
		errors := "OK"
		if len(g.Errors) > 0 {
			errors = strings.Join(g.Errors, ", ")
		}
		of := words.Count(g.Communicators, "communicator") + " of " + words.Count(g.Ranks, "rank")
		to.line("%s  %s on %s: %s, %s", indent, of, words.Count(g.Nodes, "node"), g.Status, errors)
	}
	if len(a.Communicators) == 0 {
		to.line("%s  No communicator", indent)
	}
	for _, p := range a.Problems {
		to.line("%s  %s", indent, job.Problem(&p))
	}
	if a.LeftOut > 0 {
		to.line("%s  %s more", indent, words.Count(a.LeftOut, "line"))
	}
	if a.NotUnderstood > 0 {
		to.line("%s  %s of the answer not understood: --raw prints it", indent, words.Count(a.NotUnderstood, "line"))
	}
	to.line("%s  Evidence only: NCCL has reported OK during hangs. MISMATCH is normal while the operations increase.",
		indent)
	if raw {
		for l := range strings.Lines(a.Raw) {
			fmt.Fprintf(to, "%s  | %s\n", indent, words.Foreign(strings.TrimRight(l, "\r\n")))
		}
	}
}
