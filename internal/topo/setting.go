package topo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rdma_exporter/internal/snapshot/hostdata"
)

// Setting is an NCCL setting of a job.
type Setting struct {
	Job      string `json:"job"`
	Setting  string `json:"setting"` // id of docs/setup.md
	State    string `json:"state"`   // ok, differs, unknown
	Found    string `json:"found"`   // empty: unknown
	Wanted   string `json:"wanted"`
	Evidence string `json:"evidence,omitempty"` // for the wanted value, or the reason why the found one is unknown
	Remedy   string `json:"remedy,omitempty"`
}

// jobDomain is the domain of job settings: setup.Job.
const jobDomain = "job"

// settingsOf returns the job settings that were compared.
func settingsOf(s *hostdata.Setup) (out []Setting) {
	if s == nil {
		return nil
	}
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Domain == jobDomain {
			out = append(out, Setting{r.Object, r.Setting, string(r.State), r.Found, r.Wanted, r.Evidence, r.Remedy})
		}
	}
	slices.SortStableFunc(out, func(a, b Setting) int { return strings.Compare(a.Job, b.Job) })
	return out
}

// writeSettings writes the settings of each job.
func (m *Machine) writeSettings(w io.Writer) {
	job := ""
	for i, s := range m.Settings {
		if i == 0 {
			fmt.Fprint(w, "\nSettings of NCCL in running jobs\n")
		}
		if i == 0 || s.Job != job {
			job = s.Job
			fmt.Fprintf(w, "  %s\n", job)
		}
		switch s.State {
		case string(hostdata.SetupOK):
			fmt.Fprintf(w, "    %s: %s\n", s.Setting, s.Found)
		case string(hostdata.SetupUnknown):
			fmt.Fprintf(w, "    %s: unknown: %s\n", s.Setting, s.Evidence)
		default:
			fmt.Fprintf(w, "    %s: %s, wanted: %s\n", s.Setting, s.Found, s.Wanted)
			if s.Evidence != "" {
				fmt.Fprintf(w, "      Evidence: %s\n", s.Evidence)
			}
			fmt.Fprintf(w, "      Action: %s\n", s.Remedy)
		}
	}
}
