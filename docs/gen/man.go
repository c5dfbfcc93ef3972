package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/app"
)

// manPage is rdma_exporter(1), in the man macros.
func manPage() []byte {
	m := app.CommandLine()
	var r roff
	r.macro(".TH RDMA_EXPORTER 1 \"\" rdma_exporter \"User Commands\"")
	r.macro(".SH NAME")
	r.text("rdma_exporter - Prometheus exporter and alerting daemon for RDMA fabrics")
	r.macro(".SH SYNOPSIS")
	r.macro(`\fBrdma_exporter\fR [\fIFLAG\fR ...] [\fICOMMAND\fR [\fIFLAG\fR ...] [\fIARGUMENT\fR ...]]`)
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
		r.item(app.CommandUsage(c))
		r.text(c.Help)
		for _, a := range c.Args {
			r.text(a.Name + ": " + a.Help)
		}
		if len(c.Flags) > 0 {
			r.macro(".RS")
			r.groups(c.Flags, len(c.Flags) > len(app.FlagGroups(c.Flags)[0].Flags), ".PP\n.I %s")
			r.macro(".RE")
		}
	}
	r.macro(".SH OPTIONS")
	r.text("Global options.")
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
	"Exports metrics of the RDMA devices of this host: InfiniBand and RoCE ports, links, transceivers, PCIe links, and paths between GPUs and NICs. Alerting rules in the binary detect faults; a central Prometheus can load them as well.",
	"The exporter is read-only: it changes nothing on the host and runs no other program. It works unprivileged and reports the data that requires a permission.",
}

// manRest are the sections after the options.
var manRest = []struct {
	title string
	items [][2]string
}{
	{"EXIT STATUS", [][2]string{
		{"0", "Success; check: no finding of severity warning or critical."},
		{"1", "Run-time error; check: warning."},
		{"2", "Invalid flags, arguments or files; check: critical."},
		{"3", "check only: unknown."},
	}},
	{"SIGNALS", [][2]string{
		{"SIGHUP", "Reloads --config.file and the rule files; the log reports the result."},
		{"SIGTERM, SIGINT", "Exits after the scrapes in progress, within five seconds."},
	}},
	{"FILES", [][2]string{
		{"/var/lib/rdma_exporter", "State: history of links, devices and alerts (--state.dir)."},
	}},
	{"EXAMPLES", [][2]string{
		{"rdma_exporter --replay=demo", "Serve the recorded demo node; needs no RDMA device."},
		{"rdma_exporter check --severity=critical", "Critical findings of this host, for a job prolog."},
		{"rdma_exporter capture --anonymise -o node.txtar", "Write all data read from this host into one file, with pseudonyms, for a bug report."},
	}},
	{"SEE ALSO", [][2]string{
		{"http://localhost:10879/", "Page of a running exporter: verdict, findings, runbooks."},
	}},
}

// roff builds a man page.
type roff struct{ bytes.Buffer }

func (r *roff) macro(line string) { fmt.Fprintln(r, line) }

// text writes a paragraph: one sentence per line, as is usual in roff, lines of up to 80 characters.
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

// groups lists flags below the titles of their groups, or without them.
func (r *roff) groups(flags []*kingpin.FlagModel, titles bool, form string) {
	for _, g := range app.FlagGroups(flags) {
		if titles {
			r.macro(fmt.Sprintf(form, `"`+escape(g.Title)+`"`))
		}
		for _, f := range g.Flags {
			head := app.FlagUsage(f)
			if f.Short != 0 {
				head = "-" + string(f.Short) + ", " + head
			}
			r.item(head)
			r.text(f.Help)
		}
	}
}

var roffSpecial = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// escape escapes text.
func escape(s string) string {
	s = roffSpecial.Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
