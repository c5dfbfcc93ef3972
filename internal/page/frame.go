package page

import (
	"cmp"
	"time"
	"unicode"
	"unicode/utf8"

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
	Lead     string // the worst finding, or what is healthy
	Account  string // of findings and objects
	Measured string // whether everything was
	Notes    []string
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

// Conclude sets the headline of the report on a node or a fabric. starting is the reason why there is no report yet;
// empty: there is one, or no rules are evaluated.
func (f *Frame) Conclude(r *check.Report, starting, subject string) {
	f.Subject = subject
	switch {
	case starting != "":
		f.Health, f.Word, f.Lead = NotEvaluated, "Starting", starting
		return
	case r == nil:
		f.Health, f.Word = NotEvaluated, NotEvaluated.Heading()
		f.Lead = "No rules are evaluated (--no-alerting): state as read, without a verdict or a history."
		return
	case r.Error != "", r.ExitCode == check.ExitUnknown:
		f.Health, f.Word = NotEvaluated, "Unknown"
	default:
		f.Health = Health(cmp.Or(r.Headline, r.Verdict))
		f.Word = Health(r.HeadlineWord()).Heading()
	}
	f.Lead = Shorten(cmp.Or(r.Lead(), "No finding on this "+subject+", as far as rules are evaluated."), MaxText)
	if r.Worst() == "" { // else it begins with the name of an object
		first, size := utf8.DecodeRuneInString(f.Lead)
		f.Lead = string(unicode.ToUpper(first)) + f.Lead[size:]
	}
	f.Account = Shorten(words.Join(" ", r.Account(), r.DrainNote()), MaxText)
	f.Notes = words.Map(r.Notes(), func(note string) string { return Shorten(note, MaxText) + "." })
	f.Measured = r.Measured() + "."
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
