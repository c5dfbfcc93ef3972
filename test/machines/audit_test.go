//go:build !race

package machines

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/coverage"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/rulefiles"
	"rdma_exporter/rules"
)

// without returns a round of which a metric could not be read.
func without(r coverage.Round, d *exposition.Desc) coverage.Round {
	before := r.Source
	r.Families = slices.DeleteFunc(slices.Clone(r.Families),
		func(f exposition.Family) bool { return f.Head.Desc.Name == d.Name })
	r.Source = func(name string) coverage.Reason {
		if name == d.Asks {
			return coverage.Failed
		}
		return before(name)
	}
	return r
}

// TestUnknownOfMachines takes from recorded machines each metric that an alert needs, as if it could not be read: an
// alert that was evaluated is not any more, and reports it. A metric must be on one machine at least on which the alert
// is evaluated.
func TestUnknownOfMachines(t *testing.T) {
	files, names, err := rules.Node()
	must(t, err)
	alerts, err := alerting.Needs(files, names)
	must(t, err)
	d := coverage.New(alerts, rulefiles.Readable())
	descs := map[string]*exposition.Desc{}
	for _, m := range rulefiles.Readable() {
		descs[m.Desc.Name] = m.Desc
	}
	var mu sync.Mutex
	type pair struct{ alert, metric string }
	outcome := map[pair]string{}
	t.Run("machines", func(t *testing.T) {
		Each(t, func(t *testing.T, name string) {
			r := coverage.Round{
				Families: played(t, name).families, Collector: func(string) coverage.Reason { return "" },
				Source: func(string) coverage.Reason { return "" },
			}
			state := func(r coverage.Round) map[string]string {
				out := map[string]string{}
				report := d.Evaluate(r)
				for _, g := range report.Gaps {
					out[coverage.Named(g.Alert, g.Fault)] = "not evaluated"
					if g.Partly {
						out[coverage.Named(g.Alert, g.Fault)] = "partly"
					}
				}
				for _, n := range report.Idle {
					out[n] = "not applicable"
				}
				return out
			}
			before := state(r)
			metrics := map[string]map[string]string{}
			for _, a := range alerts {
				if before[a.String()] != "" {
					continue
				}
				for _, m := range a.Need.Metrics() {
					if descs[m].Scope == exposition.ScopeExporter ||
						!slices.ContainsFunc(r.Families, func(f exposition.Family) bool { return f.Head.Desc.Name == m }) {
						continue
					}
					if metrics[m] == nil {
						metrics[m] = state(without(r, descs[m]))
					}
					mu.Lock()
					if was := outcome[pair{a.String(), m}]; was == "" || was == "evaluated" ||
						was == "not applicable" && metrics[m][a.String()] != "" {
						outcome[pair{a.String(), m}] = metrics[m][a.String()]
						if metrics[m][a.String()] == "" {
							outcome[pair{a.String(), m}] = "evaluated"
						}
					}
					mu.Unlock()
				}
			}
		})
	})
	for _, a := range alerts {
		for _, m := range a.Need.Metrics() {
			if descs[m].Scope == exposition.ScopeExporter || notRead[m] {
				continue
			}
			if got := outcome[pair{a.String(), m}]; got != "not evaluated" && got != "partly" {
				t.Errorf("%s is %s where %s could not be read", a.String(), cmp.Or(got, "evaluated on no machine"), m)
			}
		}
	}
}

// notRead are metrics that do not come from a file or a driver: words of the configuration, what follows from other
// metrics, and what is sampled on live hosts alone. Others are not required, or on no machine that is recorded for as
// long as the alert looks back.
var notRead = map[string]bool{
	"rdma_port_link_down_events_total": true, // a list of troubles has it
	// No far end of a hot module is recorded.
	"rdma_port_neighbour_errors_total": true, "rdma_port_neighbour_fec_info": true,
	"rdma_port_pinned_active": true, "rdma_port_roce_pin_info": true,
	"rdma_port_peers_active":     true,
	"rdma_port_fec_ber_baseline": true, // the exporter's memory
	"rdma_port_fec_info":         true, // else it follows from the rate of a lane
	// The exporter's memory.
	"rdma_port_earlier_link_layer_info": true, "rdma_port_peer_lost_total": true,
	// Recorded for 12m at most.
	"rdma_port_fec_lane_corrected_bit_errors_total": true, "rdma_port_fec_lane_corrected_symbols_total": true,
	"rdma_device_renamed_info":   true,                                // the exporter's memory
	"rdma_gpu_lost_info":         true,                                // it follows from a whole reading of NVML
	"rdma_gdr_gpu_obstacle_info": true, "rdma_gdr_gpu_possible": true, // they follow from the decision
	"rdma_gpu_nic_affinity_info": true,                                                   // it follows from the places in rdma_gdr_gpu_info
	"rdma_gpu_released_seconds":  true, "rdma_gpu_release_start_timestamp_seconds": true, // what an operator has asked for
	"rdma_host_maintenance": true, "rdma_host_maintenance_end_timestamp_seconds": true,
	"rdma_port_pfc_sampled_seconds_total": true, "rdma_port_pfc_stalled_seconds_total": true,
}
