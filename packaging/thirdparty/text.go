package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const ruler = "--------------------------------------------------------------------------------"

// noticesText is THIRD_PARTY of a binary: the modules, and each text once with its files.
func noticesText(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("Software of others in rdma_exporter: module, version, licence. The texts follow.\n\n")
	var texts []string
	where := map[string][]string{}
	for _, m := range modules {
		fmt.Fprintf(&b, "%s  %s  %s\n", m.path, m.version, strings.Join(m.licences(), ", "))
		for _, f := range m.files {
			if where[f.text] == nil {
				texts = append(texts, f.text)
			}
			where[f.text] = append(where[f.text], m.path+": "+f.name)
		}
	}
	for _, t := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s\n", ruler, strings.Join(where[t], "\n"), ruler, t)
	}
	return b.Bytes()
}

// dependency is a direct dependency in go.mod.
type dependency struct {
	path, purpose string
	importers     []string // packages of the program; empty: tests and generators only
}

var requirement = regexp.MustCompile(`^\t(\S+) v\S+(?: // (.*))?$`)

// directOf reads the direct dependencies and their purposes, which are the trailing comments.
func directOf(name string) (out []dependency, _ error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var errs []error
	for line := range strings.Lines(string(b)) {
		m := requirement.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || strings.HasPrefix(m[2], "indirect") {
			continue
		}
		if m[2] == "" {
			errs = append(errs, fmt.Errorf("%s: %s has no purpose: add it as a comment after the version", name, m[1]))
		}
		out = append(out, dependency{path: m[1], purpose: m[2]})
	}
	if len(out) == 0 {
		errs = append(errs, fmt.Errorf("%s: no direct dependency", name))
	}
	return out, errors.Join(errs...)
}

// importers finds which packages of the program import each dependency.
func importers(ctx context.Context, direct []dependency) ([]dependency, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "rdma_exporter/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // the largest flavour
	text, err := output(cmd)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		name := strings.TrimPrefix(f[0], "rdma_exporter/")
		if strings.HasSuffix(name, "/gen") || strings.HasPrefix(name, "test/") {
			continue
		}
		for i, d := range direct {
			uses := func(p string) bool { return p == d.path || strings.HasPrefix(p, d.path+"/") }
			if slices.ContainsFunc(f[1:], uses) {
				direct[i].importers = append(direct[i].importers, "`"+name+"`")
			}
		}
	}
	return direct, nil
}

const pageHead = `# Dependencies

<!-- Written by make update from go.mod and the licence files of the modules. -->

Direct dependencies with their purpose (the comment in go.mod). ` + "`make check`" + ` verifies that every module compiled into the program has a known,
permissive licence; THIRD_PARTY of each release contains the texts. Build and test tools are separate modules in tools/ and dashboards/gen.

| module | purpose | imported by | licence |
| --- | --- | --- | --- |
`

const restHead = `
## Indirect dependencies

Modules compiled in because the modules above import them, by licence.
`

const notUsed = `
## Not used

github.com/prometheus/procfs (v0.23.0) reads only the figures of the exporter's own process (time that it waits for a CPU), no file of a
monitored machine. It takes the path of a directory and opens files by name: it has no
parser of content that is already read, so a replay could not use it and a capture would not record what it reads, and it follows the links of a
copied tree to the outside (--path.rootfs), where ` + "`internal/host`" + ` resolves beneath the root (openat2). Besides:

| data | reason |
| --- | --- |
| /proc/PID/status, environ | one file at a time as above; status fails as a whole on a line that it cannot parse |
| /proc/PID/limits | fails as a whole on a line that it does not know; "unlimited" and 2^64-1 bytes are the same |
| /proc/PID/cgroup | fails as a whole on a line that it does not know |
| /proc/PID/fd | lists all descriptors of a process; the limit here is 4096 per process and scan, with a mark that there are more |
| /proc/PID/fdinfo | size and exp_name of a DMA-BUF are not parsed |
| mounts | not read by this program; mountinfo is read without a limit |
| modules | read from /sys/module, whose directories have parameters and versions; there is no parser of /proc/modules |

github.com/prometheus/client_golang/api, for ` + "`backtest`" + `: reads a response without a limit of its size. Its errors
do not name the path, nor a server that is not a Prometheus ("invalid character '<'" for a login page).

## Compiled in and not called

177 packages of the binary without cgo are clients of AWS, Azure, Google and Kubernetes that the program does not call. They are imported by
packages of Prometheus (v0.315.0) that ` + "`internal/alerting`" + ` needs:

| imported | by | brings |
| --- | --- | --- |
| config | tsdb | service discovery and the authentication of remote write: the clients of AWS, Azure and Google |
| k8s.io/client-go/rest | util/logging, which promql imports | the client of Kubernetes |
| notifier | rules | the alert as it is sent, and 42 packages: the API of Alertmanager and go-openapi |

` + "`internal/alerting`" + ` uses notifier.Alert too. A type of its own would drop no package, since rules imports notifier. A copy of
rules without that import drops the 42, and 1.3 of the 40.6 MB of the binary; tsdb still imports config. The linker drops what is
unreachable: code and data of AWS, Azure and Google are 0.2 MB of the binary, those of Kubernetes 0.7 MB.
`

// page is docs/dependencies.md.
func page(direct []dependency, modules []module) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead)
	for _, d := range direct {
		by, ids := "tests only", "not in the program"
		if d.importers != nil {
			by = strings.Join(d.importers, ", ")
		}
		if i := slices.IndexFunc(modules, func(m module) bool { return m.path == d.path }); i >= 0 {
			ids = strings.Join(modules[i].licences(), ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.path, d.purpose, by, ids)
	}
	b.WriteString(notUsed)
	b.WriteString(restHead)
	rest := map[string][]string{} // paths by licences
	for _, m := range modules {
		if !slices.ContainsFunc(direct, func(d dependency) bool { return d.path == m.path }) {
			licences := strings.Join(m.licences(), ", ")
			rest[licences] = append(rest[licences], m.path)
		}
	}
	for _, licences := range slices.Sorted(maps.Keys(rest)) {
		fmt.Fprintf(&b, "\n%s:\n\n%s\n", licences, wrapped(rest[licences]))
	}
	return b.Bytes()
}

// wrapped returns a list in lines of at most 140 columns.
func wrapped(list []string) string {
	var b strings.Builder
	width := 0
	for i, item := range list {
		if i < len(list)-1 {
			item += ","
		}
		switch {
		case i == 0:
		case width+1+len(item) > 140:
			b.WriteString("\n")
			width = 0
		default:
			b.WriteString(" ")
			width++
		}
		b.WriteString(item)
		width += len(item)
	}
	return b.String()
}
