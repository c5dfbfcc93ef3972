package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
)

// manPage is rdma_exporter(1), in the man macros.
func manPage() []byte {
	m := cli.CommandLine()
	var r roff
	r.macro(".TH RDMA_EXPORTER 1 \"\" rdma_exporter \"User Commands\"")
	r.macro(".SH NAME")
	r.text("rdma_exporter - Prometheus exporter and alerting daemon for RDMA fabrics")
	r.macro(".SH SYNOPSIS")
	r.macro(`\fBrdma_exporter\fR [\fICOMMAND\fR] [\fIFLAG\fR ...] [\fIARGUMENT\fR ...]`)
	r.macro(".SH DESCRIPTION")
	for i, p := range manDescription {
		if i > 0 {
			r.macro(".PP")
		}
		r.text(p)
	}
	r.macro(".SH COMMANDS")
	for _, c := range m.FlattenedCommands() {
		if c.Name == "help" {
			continue
		}
		r.item(cli.CommandUsage(c))
		r.text(c.Help)
		for _, a := range c.Args {
			r.text(a.Name + ": " + a.Help)
		}
		if len(c.Flags) > 0 {
			r.macro(".RS")
			r.groups(c.Flags, len(cli.FlagGroups(c.Flags)) > 1, ".PP\n.I %s")
			r.macro(".RE")
		}
	}
	r.macro(".SH OPTIONS")
	r.text("Flags of all commands. They may stand before or after the command.")
	r.groups(m.Flags, true, ".SS %s")
	for _, s := range manRest {
		r.macro(".SH " + s.title)
		for _, item := range s.items {
			r.item(item[0])
			r.text(item[1])
		}
	}
	return r.Bytes()
}

var manDescription = []string{
	"Exports metrics of the RDMA devices of this host: InfiniBand, RoCEv2, iWARP and cloud adapters: ports, links, transceivers, PCIe links, and GPUDirect RDMA between GPUs and NICs. Evaluates built-in alerting rules, which a central Prometheus can load as well. Without a command it runs serve.",
	"It is read-only: it changes nothing on the host and runs no other program. It works unprivileged, and reports what it cannot read.",
}

// manRest are the sections after the options.
var manRest = []struct {
	title string
	items [][2]string
}{
	{"EXIT STATUS", [][2]string{
		{"0", "Success. check: no finding of severity warning or above."},
		{"1", "healthy: not healthy. check: warning."},
		{"2", "Error, such as an invalid flag, argument or file. check: critical."},
		{"3", "check: unknown, or an error of the command line."},
	}},
	{"SIGNALS", [][2]string{
		{"SIGHUP", "Reloads --config.file, --alerting.rule-files and --alerting.alertmanager-config-file. An invalid file changes nothing and is logged."},
		{"SIGTERM, SIGINT", "Finishes scrapes in progress and exits, within 5s."},
	}},
	{"FILES", [][2]string{
		{"/var/lib/rdma_exporter", "State directory (--state.dir): known links and devices, alert state, incident captures."},
	}},
	{"EXAMPLES", [][2]string{
		{"rdma_exporter --replay=demo", "Serves the built-in demo node. Requires no RDMA device."},
		{"rdma_exporter check --severity=critical", "Reports critical faults of this host."},
		{"rdma_exporter capture --anonymise -o node.txtar", "Writes everything read on this host to one file, with pseudonyms, for a bug report."},
	}},
	{"SEE ALSO", [][2]string{
		{"http://localhost:10879/", "Page of the running exporter: verdict, findings, runbooks."},
	}},
}

// roff builds a man page.
type roff struct{ bytes.Buffer }

func (r *roff) macro(line string) { fmt.Fprintln(r, line) }

// text writes a paragraph: each sentence begins a line, as is usual in roff, and lines have up to 80 characters.
func (r *roff) text(s string) {
	for _, sentence := range strings.Split(strings.ReplaceAll(s, ". ", ".\n"), "\n") {
		line := ""
		for _, word := range strings.Fields(sentence) {
			word = escape(word)
			if line != "" && len(line)+1+len(word) > 80 {
				fmt.Fprintln(r, line)
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		fmt.Fprintln(r, line)
	}
}

// item starts a list entry.
func (r *roff) item(head string) {
	fmt.Fprintf(r, ".TP\n\\fB%s\\fR\n", escape(head))
}

// groups lists flags by group, with or without titles.
func (r *roff) groups(flags []*kingpin.FlagModel, titles bool, form string) {
	for _, g := range cli.FlagGroups(flags) {
		if titles {
			r.macro(fmt.Sprintf(form, `"`+escape(g.Title)+`"`))
		}
		for _, f := range g.Flags {
			head := cli.FlagUsage(f)
			if f.Short != 0 {
				head = "-" + string(f.Short) + ", " + head
			}
			r.item(head)
			r.text(f.Help)
		}
	}
}

var roffSpecial = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// escape escapes text for roff.
func escape(s string) string {
	s = roffSpecial.Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
