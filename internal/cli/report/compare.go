package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/traits"
	"rdma_exporter/internal/words"
)

// Compare is the command compare, with its flags.
type Compare struct {
	json    bool
	hosts   []string
	timeout time.Duration
}

// compared is the result.
type compared struct {
	Version     int                 `json:"version"`
	Verdict     string              `json:"verdict"` // ok, warning, unknown
	ExitCode    int                 `json:"exit_code"`
	Hosts       []comparedHost      `json:"hosts"`
	Differences []traits.Difference `json:"differences"`
	// Incomparable are the settings that some of the hosts do not have.
	Incomparable []string `json:"not_comparable,omitempty"`
}

type comparedHost struct {
	Name   string `json:"host"`
	Source string `json:"source"` // URL, file, or this host
	Kind   string `json:"kind"`
	Err    string `json:"error,omitempty"` // why it is not compared

	traits []traits.Trait
}

const (
	compareVersion = 1
	thisHost       = "this host"
	// maxNode limits an answer: a node has 300 kB.
	maxNode = 32 << 20
)

// Flags adds the flags.
func (k *Compare) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of tables. Schema: docs/check.md.").BoolVar(&k.json)
	a.Flag("timeout", "Time for the answer of an exporter.").Default("10s").DurationVar(&k.timeout)
	a.Arg("host", "Exporter (HOST, HOST:PORT or URL), capture, or file of check --setup --json. One is compared with this host.").
		Required().StringsVar(&k.hosts)
}

// Run prints what differs between the hosts.
func (k *Compare) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	sources := k.hosts
	if len(sources) == 1 {
		sources = append([]string{""}, sources...)
	}
	r := compared{Version: compareVersion, Differences: []traits.Difference{}}
	for _, s := range sources {
		h, err := k.read(ctx, c, s, std)
		if err != nil {
			h = comparedHost{Name: s, Source: s, Err: command.OneLine(err)}
		}
		r.add(h)
	}
	r.compare()
	err := command.Print(std, k.json, r, nil, func(w io.Writer) error { return r.print(w) })
	return r.ExitCode, err
}

// add adds a host under a name of its own.
func (r *compared) add(h comparedHost) {
	if slices.ContainsFunc(r.Hosts, func(o comparedHost) bool { return o.Name == h.Name }) {
		h.Name += " " + h.Source
	}
	r.Hosts = append(r.Hosts, h)
}

// compare fills in what differs, and the verdict.
func (r *compared) compare() {
	var hosts []traits.Named
	for _, h := range r.Hosts {
		if h.Err == "" {
			hosts = append(hosts, traits.Named{Name: h.Name, Host: traits.Host{Kind: h.Kind, Traits: h.traits}})
		}
	}
	if len(hosts) > 1 {
		r.Differences = append(r.Differences, traits.Compare(hosts)...)
		r.Incomparable = traits.Incomparable(hosts, r.Differences)
	}
	r.Verdict, r.ExitCode = "ok", check.ExitOK
	switch {
	case slices.ContainsFunc(r.Differences, func(d traits.Difference) bool { return d.Breaks() }):
		r.Verdict, r.ExitCode = "warning", check.ExitWarning
	case len(hosts) < len(r.Hosts):
		r.Verdict, r.ExitCode = "unknown", check.ExitUnknown
	}
}

// read reads a host: an exporter, a capture, a file of check --setup --json; empty: this one.
func (k *Compare) read(
	ctx context.Context, c *machine.Config, from string, std command.Streams,
) (comparedHost, error) {
	if from == "" {
		return observe(ctx, c, thisHost, std)
	}
	info, err := os.Stat(from)
	switch {
	case err == nil && info.IsDir():
		return comparedHost{}, errors.New("is a directory: name a capture, or a file of check --setup --json")
	case err == nil:
		return k.readFile(ctx, c, from, std)
	case strings.ContainsAny(from, `/\`) && !strings.Contains(from, "://"):
		return comparedHost{}, err // a path, not a host
	}
	u, err := exporterAt(from)
	if err != nil {
		return comparedHost{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, k.timeout, fmt.Errorf("no answer within %s", k.timeout))
	defer cancel()
	h, err := fetchNode(ctx, u)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	h.Source = u.Redacted()
	return h, err
}

// exporterAt returns the URL of an exporter that is named by its host.
func exporterAt(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		if text = "http://" + text; !strings.Contains(strings.TrimPrefix(text, "http://"), ":") {
			text += ":" + machine.DefaultPort
		}
	}
	return control.ExporterURL(text)
}

func fetchNode(ctx context.Context, u *url.URL) (comparedHost, error) {
	b, err := fetchLimited(ctx, u.JoinPath("api/v1/node"), maxNode)
	if err != nil {
		return comparedHost{}, err
	}
	return decodeHost(b)
}

// decodeHost reads what /api/v1/node and check --setup --json have in common.
func decodeHost(b []byte) (h comparedHost, err error) {
	var of struct {
		Host   string         `json:"host"`
		Kind   *string        `json:"kind"`
		Traits []traits.Trait `json:"traits"`
	}
	if err := json.Unmarshal(b, &of); err != nil {
		return h, fmt.Errorf("is no report of an exporter: %w", err)
	}
	if of.Kind == nil {
		return h, errors.New("has no settings to compare: the exporter is older than this one, its collector setup is off, or the file is not of check --setup --json")
	}
	of = words.AllForeign(of)
	return comparedHost{Name: of.Host, Kind: *of.Kind, traits: of.Traits}, nil
}

func (k *Compare) readFile(
	ctx context.Context, c *machine.Config, name string, std command.Streams,
) (comparedHost, error) {
	f, err := os.Open(name)
	if err != nil {
		return comparedHost{}, err
	}
	defer f.Close()
	start := make([]byte, 1)
	if _, err := io.ReadFull(f, start); err != nil {
		return comparedHost{}, errors.New("is empty")
	}
	if start[0] != '{' {
		defer func(replay string) { c.Replay = replay }(c.Replay)
		c.Replay = name
		return observe(ctx, c, name, std)
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxNode))
	if err != nil {
		return comparedHost{}, err
	}
	h, err := decodeHost(bytes.Join([][]byte{start, rest}, nil))
	h.Source = name
	return h, err
}

// observe reads this host, or a capture.
func observe(ctx context.Context, c *machine.Config, source string, std command.Streams) (comparedHost, error) {
	p, _, err := c.Observe(ctx, std.Log)
	if err != nil {
		return comparedHost{}, err
	}
	if p.Node().Setup == nil {
		return comparedHost{}, fmt.Errorf(
			"the settings were not read within --collect.timeout=%s, or the collector setup is off", c.Timeout)
	}
	h := traits.Of(p.Node())
	return comparedHost{Name: p.Host, Source: source, Kind: h.Kind, traits: h.Traits}, nil
}

const (
	// maxColumns is the number of hosts that have a column; more are listed by value.
	maxColumns = 3
	// maxCell is the width from which a value does not fit into a column.
	maxCell = 24
	// maxListed is the number of settings that are listed by name.
	maxListed = 6
)

// print writes the verdict, a table, and below what does not fit into it.
func (r *compared) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s\n", r.Verdict, r.headline())
	for _, h := range r.Hosts {
		if h.Err != "" {
			fmt.Fprintf(w, "%s: not read: %s\n", h.Name, h.Err)
		}
	}
	var table command.Table
	var lists []traits.Difference
	names := r.names()
	table.Row(append([]string{"SETTING"}, names...)...)
	for _, d := range r.Differences {
		cells := []string{d.String()}
		for _, name := range names {
			cells = append(cells, cellOf(d, name))
		}
		if len(names) > maxColumns || slices.ContainsFunc(cells[1:], func(c string) bool { return len(c) > maxCell }) {
			lists = append(lists, d)
			continue
		}
		table.Row(cells...)
	}
	if len(table.Rows) > 1 {
		fmt.Fprintln(w)
		if err := table.Print(w); err != nil {
			return err
		}
	}
	for _, d := range lists {
		fmt.Fprintf(w, "\n%s\n", d.String())
		for _, v := range d.Values {
			fmt.Fprintf(w, "  %s: %s\n", describeHosts(d, v, len(names)), v.Value)
		}
		if len(d.Unknown) > 0 {
			fmt.Fprintf(w, "  %s: unknown\n", strings.Join(d.Unknown, ", "))
		}
	}
	switch n := len(r.Incomparable); {
	case n > maxListed:
		fmt.Fprintf(w, "\nNot comparable: %d settings that not every host reports (--json lists them)\n", n)
	case n > 0:
		fmt.Fprintf(w, "\nNot comparable, as not every host reports it: %s\n", strings.Join(r.Incomparable, ", "))
	}
	return nil
}

// headline says how many settings differ, and of how many hosts.
func (r *compared) headline() string {
	names := r.names()
	if len(names) < 2 {
		return "fewer than two hosts could be read"
	}
	breaking := 0
	for _, d := range r.Differences {
		if d.Breaks() {
			breaking++
		}
	}
	text := fmt.Sprintf("%s of %s differ", words.Count(len(r.Differences), "setting"), words.Count(len(names), "host"))
	switch {
	case len(r.Differences) == 0:
		return words.Count(len(names), "host") + " alike in all settings that are known of them"
	case breaking > 0:
		text += fmt.Sprintf(", %d of them in what jobs depend on", breaking)
	}
	return text
}

func (r *compared) names() (out []string) {
	for _, h := range r.Hosts {
		if h.Err == "" {
			out = append(out, h.Name)
		}
	}
	return out
}

// cellOf returns the values of a host: "3", or with several "3 (7), none (mlx5_4/1)".
func cellOf(d traits.Difference, name string) string {
	var parts []string
	for _, v := range d.Values {
		if slices.Contains(v.Hosts, name) {
			parts = append(parts, v.Value+partOf(d, v, name))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "unknown")
}

// partOf tells which objects of a host have a value, where it has several values.
func partOf(d traits.Difference, v traits.Value, name string) string {
	several := func(o traits.Value) bool { return o.Value != v.Value && slices.Contains(o.Hosts, name) }
	if !slices.ContainsFunc(d.Values, several) {
		return ""
	}
	return " (" + countOrName(v.Objects[name]) + ")"
}

func countOrName(objects []string) string {
	if len(objects) == 1 {
		return objects[0]
	}
	return fmt.Sprint(len(objects))
}

// describeHosts names the hosts with a value, or counts them where they are more than half.
func describeHosts(d traits.Difference, v traits.Value, all int) string {
	if len(v.Hosts) > max(all/2, 2) {
		return words.Count(len(v.Hosts), "host")
	}
	return strings.Join(words.Map(v.Hosts, func(name string) string { return name + partOf(d, v, name) }), ", ")
}
