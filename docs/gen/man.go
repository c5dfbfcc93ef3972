package main

import (
	"bytes"
	"strings"
	"text/template"

	"rdma_exporter/internal/cli"
)

// manTemplate is rdma_exporter(1), in the man macros. kingpin's has neither exit status nor examples, and its dashes
// cannot be copied.
const manTemplate = `{{define "flags"}}{{range visible .}}.TP
\fB{{if .Short}}\-{{printf "%c" .Short}}, {{end}}{{usage . | roff}}\fR
{{roff .Help}}
{{end}}{{end -}}
.TH RDMA_EXPORTER 1 "" rdma_exporter "User Commands"
.SH NAME
rdma_exporter \- Prometheus exporter and alerting daemon for RDMA fabrics
.SH SYNOPSIS
\fBrdma_exporter\fR [\fICOMMAND\fR] [\fIFLAG\fR ...] [\fIARGUMENT\fR ...]
.SH DESCRIPTION
Exports metrics of the RDMA devices of this host: InfiniBand, RoCEv2, iWARP and
cloud adapters: ports, links, transceivers, PCIe links, and GPUDirect RDMA
between GPUs and NICs.
Evaluates built\-in alerting rules, which a central Prometheus can load as well.
Without a command it runs serve.
.PP
It is read\-only: it changes nothing on the host and runs no other program.
It works unprivileged, and reports what it cannot read.
.SH COMMANDS
{{range .FlattenedCommands}}{{if ne .Name "help"}}.TP
\fB{{roff .FullCommand}}{{with .FlagSummary}} {{roff .}}{{end}}{{range .Args}} {{if .Required}}{{.Name}}{{else}}[{{.Name}}]{{end}}{{end}}\fR
{{roff .Help}}
{{range .Args}}{{printf "%s: %s" .Name .Help | roff}}
{{end}}{{if .Flags}}.RS
{{template "flags" .Flags}}.RE
{{end}}{{end}}{{end -}}
.SH OPTIONS
Flags of all commands. They may stand before or after the command.
{{template "flags" .Flags -}}
.SH EXIT STATUS
.TP
\fB0\fR
Success. check: no finding of severity warning or above.
.TP
\fB1\fR
healthy: not healthy. check: warning.
.TP
\fB2\fR
Error, such as an invalid flag, argument or file. check: critical.
.TP
\fB3\fR
check: unknown, or an error of the command line.
.SH SIGNALS
.TP
\fBSIGHUP\fR
Reloads \-\-config.file, \-\-alerting.rule\-files and
\-\-alerting.alertmanager\-config\-file.
An invalid file changes nothing and is logged.
.TP
\fBSIGTERM, SIGINT\fR
Finishes scrapes in progress and exits, within 5s.
.SH FILES
.TP
\fB/var/lib/rdma_exporter\fR
State directory (\-\-state.dir): known links and devices, alert state, incident
captures.
.SH EXAMPLES
.TP
\fBrdma_exporter \-\-replay=demo\fR
Serves the built\-in demo node. Requires no RDMA device.
.TP
\fBrdma_exporter check \-\-severity=critical\fR
Reports critical faults of this host.
.TP
\fBrdma_exporter capture \-\-anonymise \-o node.txtar\fR
Writes everything read on this host to one file, with pseudonyms, for a bug
report.
.SH SEE ALSO
.TP
\fBhttp://localhost:10879/\fR
Page of the running exporter: verdict, findings, runbooks.
`

// manPage returns rdma_exporter(1).
func manPage() ([]byte, error) {
	t, err := template.New("").
		Funcs(template.FuncMap{"roff": roff, "usage": cli.FlagUsage, "visible": cli.Visible}).Parse(manTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, cli.CommandLine())
	return b.Bytes(), err
}

var roffSpecial = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// roff returns text for roff, in lines of up to 80 bytes. What looks like a request is none.
func roff(s string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(s) {
		word = roffSpecial.Replace(word)
		if word[0] == '.' || word[0] == '\'' {
			word = `\&` + word
		}
		switch {
		case column > 0 && column+1+len(word) > 80:
			b.WriteByte('\n')
			column = 0
		case column > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
