package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/check"
	"rdma_exporter/internal/words"
)

// Frame is the data around the contents of all pages.
type Frame struct {
	Title    string
	Base     string // relative path from the page to the prefix of all paths: empty, "../"
	Health   Health // of all that is shown
	Word     string
	Name     string // of the node, the fabric or the switch
	Subject  string // of the report: node, fabric
	Lead     string // sentences below the verdict
	Coverage string // of the rules
	When     string
	ISO      string   // When, for the script
	From     string   // the data source
	Stale    string   // why the data is old; empty where it is not
	Age      string   // of stale data
	Refresh  int      // seconds after which a browser without JavaScript loads the page again; 0: never
	Notices  []string // announced maintenance, released GPUs
	Footer   []Link
}

// Link is a link in the footer, relative to the page.
type Link struct{ Href, Text string }

// MaxText limits a text, in letters.
const MaxText = 1000

// IsStale reports whether data of an age is stale: rounds or sweeps have stopped.
func IsStale(age, interval time.Duration) bool { return age > max(staleRounds*interval, staleLeast) }

// A picture is stale after staleRounds intervals without a round, but not before staleLeast.
const (
	staleRounds = 3
	staleLeast  = time.Minute
)

// Conclude sets the headline of the report on a node or a fabric, with the number of pending alerts that are not among
// the findings. starting is the reason why there is no report yet; empty: there is one, or no rules are evaluated.
func (f *Frame) Conclude(r *check.Report, starting, subject string, pending int) {
	f.Subject = subject
	switch {
	case starting != "":
		f.Health, f.Word, f.Lead = NotEvaluated, "Starting", starting
	case r == nil:
		f.Health, f.Word = NotEvaluated, NotEvaluated.Heading()
		f.Lead = "No rules are evaluated (--no-alerting): state as read, without a verdict or a history."
	case r.Error != "", r.ExitCode == check.ExitUnknown:
		f.Health, f.Word, f.Lead = NotEvaluated, "Unknown", cmp.Or(r.Error, describeUnknown(r))
	default:
		f.Health = Health(cmp.Or(r.Headline, r.Verdict))
		f.Word, f.Lead = f.Health.Heading(), "No finding on this "+subject+", as far as rules are evaluated."
		switch {
		case len(r.Findings) > 0:
			f.Lead = words.Join(" ", describeTally(r), r.Watching())
		case r.Watching() != "":
			f.Lead = r.Watching() + " No finding."
		case pending > 0:
			f.Lead = "No finding. Pending alerts are listed below."
		}
		f.Lead = words.Join(" ", f.Lead, r.DrainNote())
	}
	if r != nil && starting == "" {
		for _, note := range slices.Concat(r.Notes(), r.Standing()) {
			f.Lead = Shorten(f.Lead+" "+note+".", MaxText)
		}
		f.Coverage = r.Coverage() + "."
	}
}

// SetTime sets the time of the data; a zero time is not shown.
func (f *Frame) SetTime(t time.Time) {
	if !t.IsZero() {
		f.When, f.ISO = FormatTime(t), t.UTC().Format(time.RFC3339)
	}
}

// SetTitle sets the title of the tab, which shows that the data is stale before anything else.
func (f *Frame) SetTitle(text string) {
	f.Title = text
	if f.Stale != "" {
		f.Title = "STALE " + f.Age + " – " + f.Name
	}
}

// SetStale marks the data as stale, with its age and the reason.
func (f *Frame) SetStale(age time.Duration, why string) { f.Age, f.Stale = FormatAge(age), why }

// describeUnknown returns the reason why the state of a node is unknown, as a sentence.
func describeUnknown(r *check.Report) string {
	why := r.Why()
	return strings.ToUpper(why[:1]) + why[1:] + "."
}

// describeTally returns the number of findings by severity, as a sentence.
func describeTally(r *check.Report) string {
	parts := check.Tally(r.Findings, "%d %s", check.Severities()...)
	if len(parts) == 1 {
		return words.Count(len(r.Findings), r.Findings[0].Severity+" finding") + "."
	}
	return words.Count(len(r.Findings), "finding") + ": " + strings.Join(parts, ", ") + "."
}
