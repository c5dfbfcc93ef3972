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
	r.text("rdma_exporter - health of RDMA fabrics for Prometheus")
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
	r.text("Those of all commands.")
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
	"Tells Prometheus and people how healthy the RDMA devices of this host are: InfiniBand and RoCE ports, their links, modules, PCIe slots and the way of data between GPUs and NICs. What is wrong is decided by alerting rules in the binary, which a central Prometheus can load as well.",
	"It reads only: nothing of the host is changed, and no other program is run. It works unprivileged and says what it cannot see then.",
}

// manRest are the sections after the options.
var manRest = []struct {
	title string
	items [][2]string
}{
	{"EXIT STATUS", [][2]string{
		{"0", "Success; of check: nothing is wrong."},
		{"1", "An error at run time; of check: a warning."},
		{"2", "Usage: flags, arguments or files that are not valid; of check: something critical."},
		{"3", "Of check only: unknown."},
	}},
	{"SIGNALS", [][2]string{
		{"SIGHUP", "Reads --config.file and the rule files again; the log says whether they are valid."},
		{"SIGTERM, SIGINT", "Ends after the scrapes in progress, within five seconds."},
	}},
	{"FILES", [][2]string{
		{"/var/lib/rdma_exporter", "What is remembered of links, devices and alerts (--state.dir)."},
	}},
	{"EXAMPLES", [][2]string{
		{"rdma_exporter --replay=demo", "Serves the recorded demo node, without an RDMA device."},
		{"rdma_exporter check --severity=critical", "What is critically wrong with this host, for the prolog of a job."},
		{"rdma_exporter capture --anonymise -o node.txtar", "Writes all that is read of this host into one file, with pseudonyms, for a report of an error."},
	}},
	{"SEE ALSO", [][2]string{
		{"http://localhost:10879/", "The page of a running exporter: verdict, findings, runbooks."},
	}},
}

// roff is a man page in the making.
type roff struct{ bytes.Buffer }

func (r *roff) macro(line string) { fmt.Fprintln(r, line) }

// text writes a paragraph: each sentence begins a line, as roff wants it, and lines have up to 80 characters.
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

// item begins an entry of a list.
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

// escape makes text mean itself.
func escape(s string) string {
	s = roffSpecial.Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
