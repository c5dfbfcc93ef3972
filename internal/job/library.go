package job

import (
	"slices"

	"rdma_exporter/internal/snapshot/accel"
)

// Library is a communication library in a job, with the transport to other hosts that it uses.
type Library struct {
	Library   string `json:"library"`
	Transport string `json:"transport"`
	Reason    string `json:"reason"`
	Words     string `json:"explanation"`
	Remedy    string `json:"remedy,omitempty"`
}

// librariesOf returns the libraries of a workload, each result once.
func librariesOf(d *accel.GDR, who accel.Workload) (out []Library) {
	for i := range d.Libraries {
		l := &d.Libraries[i]
		one := Library{l.Library, l.InUse, l.Reason, l.Words, l.Remedy}
		if l.Process.Workload() == who && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}
