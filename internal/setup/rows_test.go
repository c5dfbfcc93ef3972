package setup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// rowCase is a node, and the rows of a setting that are expected for it.
type rowCase struct {
	name string
	node func(*snapshot.Node) // changes the base
	site string               // value that the site wants
	want []string             // rows as text
}

// checkRows compares the rows of a setting, for a base node with a change.
func checkRows(t *testing.T, setting string, base func() *snapshot.Node, cases []rowCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(setting+"/"+c.name, func(t *testing.T) {
			n := base()
			if c.node != nil {
				c.node(n)
			}
			wants := func(id, _ string, _ int, _ string) string {
				if id == setting {
					return c.site
				}
				return ""
			}
			var got []string
			for _, r := range Evaluate(n, wants) {
				if r.Setting == setting {
					got = append(got, rowText(r))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// rowText returns a row in one line: object, state with severity and alert, found and wanted value with its basis,
// evidence, remedy.
func rowText(r hostdata.SetupRow) string {
	s := fmt.Sprintf("%s %s", r.Object, r.State)
	if r.State == hostdata.SetupDiffers {
		s += "/" + r.Severity
		if r.Alert != "" {
			s += "/" + r.Alert
		}
	}
	s += fmt.Sprintf(" %q want %q by %s", r.Found, r.Wanted, r.Basis)
	if r.Evidence != "" {
		s += "; " + r.Evidence
	}
	if r.Remedy != "" {
		s += "; set: " + r.Remedy
	}
	return s
}

// withFiles adds files to the reading of settings. Files of which the text is "!permission" could not be read.
func withFiles(n *snapshot.Node, files map[string]string) {
	for p, text := range files {
		f := hostdata.SetupFile{Text: text}
		if reason, ok := strings.CutPrefix(text, "!"); ok {
			f = hostdata.SetupFile{Unread: reason}
		}
		n.Setup.Files[p] = f
	}
}

func addFiles(pairs ...string) func(*snapshot.Node) {
	return func(n *snapshot.Node) {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		withFiles(n, m)
	}
}

// both applies changes in order.
func both(changes ...func(*snapshot.Node)) func(*snapshot.Node) {
	return func(n *snapshot.Node) {
		for _, change := range changes {
			change(n)
		}
	}
}
