package check_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"rdma_exporter/internal/check"
)

// FuzzTable: a report comes from another process, so its texts are untrusted.
func FuzzTable(f *testing.F) {
	for _, name := range []string{"testdata/faulty.json", "testdata/daemon.json", "testdata/failed.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"findings":[{"severity":"critical\u001b[2J","alert":"\r","labels":{"device":"\u202ex\n"},"summary":"\u009b","diagnose":"a\u0085b\u2028","action":"\u001b[H"}]}`))
	f.Add([]byte(`{"verdict":"\u001b[2Jok","findings":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r check.Report
		if json.Unmarshal(b, &r) != nil {
			return
		}
		for _, verbose := range []bool{false, true} {
			var out bytes.Buffer
			if err := check.Table(&out, r, check.Style{Verbose: verbose}); err != nil {
				t.Fatal(err)
			}
			if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
				t.Errorf("%q", out.String()[i:])
			}
			rows := len(r.Findings) + len(r.Pending)
			for _, f := range r.Findings {
				rows += len(f.Explains)
			}
			// A row has three lines below it, each reason two.
			if n := strings.Count(out.String(), "\n"); n > 24+4*rows+3*len(r.NotEvaluated) {
				t.Errorf("%d lines of %d rows", n, rows)
			}
		}
	})
}
