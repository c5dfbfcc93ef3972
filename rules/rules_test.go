package rules

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nodeExporter are the metrics of the infiniband collector of node_exporter v1.12.1 (collector/infiniband_linux.go),
// without node_infiniband_.
const nodeExporter = `
	info state_id physical_state_id rate_bytes_per_second
	legacy_multicast_packets_received_total legacy_multicast_packets_transmitted_total legacy_data_received_bytes_total
	legacy_packets_received_total legacy_unicast_packets_received_total legacy_unicast_packets_transmitted_total
	legacy_data_transmitted_bytes_total legacy_packets_transmitted_total
	excessive_buffer_overrun_errors_total link_downed_total link_error_recovery_total local_link_integrity_errors_total
	multicast_packets_received_total multicast_packets_transmitted_total
	port_constraint_errors_received_total port_constraint_errors_transmitted_total
	port_data_received_bytes_total port_data_transmitted_bytes_total port_discards_received_total port_discards_transmitted_total
	port_errors_received_total port_packets_received_total port_packets_transmitted_total port_transmit_wait_total
	unicast_packets_received_total unicast_packets_transmitted_total
	port_receive_remote_physical_errors_total port_receive_switch_relay_errors_total symbol_error_total vl15_dropped_total
	duplicate_requests_packets_total implied_nak_seq_errors_total lifespan_seconds local_ack_timeout_errors_total
	np_cnp_packets_sent_total np_ecn_marked_roce_packets_received_total out_of_buffer_drops_total out_of_sequence_packets_received_total
	packet_sequence_errors_total req_cqes_errors_total req_cqes_flush_errors_total req_remote_access_errors_total
	req_remote_invalid_request_errors_total resp_cqes_errors_total resp_cqes_flush_errors_total resp_local_length_errors_total
	resp_remote_access_errors_total rnr_nak_retry_packets_received_total roce_adp_retransmits_total roce_adp_retransmits_timeout_total
	roce_slow_restart_used_total roce_slow_restart_cnps_total roce_slow_restart_total rp_cnp_packets_handled_total
	rp_cnp_ignored_packets_received_total rx_atomic_requests_total rx_dct_connect_requests_total rx_read_requests_total
	rx_write_requests_total rx_icrc_encapsulated_errors_total`

// TestNodeExporterNames: each name of node_exporter is recorded, or docs/migration.md lists it as unavailable.
func TestNodeExporterNames(t *testing.T) {
	fsys, names, err := Compat()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	text, err := fs.ReadFile(fsys, names[0])
	if err != nil {
		t.Fatal(err)
	}
	migration, err := os.ReadFile("../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []string
	for _, m := range regexp.MustCompile(`(?m)^ +- record: node_infiniband_(\S+)$`).
		FindAllStringSubmatch(string(text), -1) {
		recorded = append(recorded, m[1])
	}
	theirs := strings.Fields(nodeExporter)
	for _, name := range recorded {
		if !slices.Contains(theirs, name) {
			t.Errorf("%s: node_exporter has no such metric", name)
		}
	}
	_, absent, _ := strings.Cut(string(migration), "\n### Unavailable\n")
	for _, name := range theirs {
		if listed := strings.Contains(absent, "`node_infiniband_"+name+"`"); slices.Contains(recorded, name) == listed {
			t.Errorf("%s: recorded: %t, listed as unavailable: %t", name, !listed, listed)
		}
	}
}

// TestOneFolder: the files of all sets may be installed in one directory.
func TestOneFolder(t *testing.T) {
	seen := map[string]bool{}
	for _, set := range []func() (fs.FS, []string, error){Node, Central, Compat} {
		_, names, err := set()
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Error("a set without files")
		}
		for _, name := range names {
			if base := path.Base(name); seen[base] {
				t.Errorf("two sets have a file %s", base)
			} else {
				seen[base] = true
			}
		}
	}
}

// TestMixinImportsEachFile: a file of rules that the mixin lacks is in no Prometheus that is deployed with it.
func TestMixinImportsEachFile(t *testing.T) {
	mixin, err := os.ReadFile("../packaging/mixin/mixin.libsonnet")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"node", "central"} {
		paths, err := filepath.Glob(set + "/*.rules.yml")
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, file := range paths {
			if !strings.Contains(string(mixin), "importstr '../../rules/"+file+"'") {
				t.Errorf("packaging/mixin/mixin.libsonnet does not import rules/%s", file)
			}
		}
	}
}
