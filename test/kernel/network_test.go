//go:build e2e

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostNetwork are the sources that require the host's network namespace, and the series that are missing in another
// one.
var hostNetwork = map[string][]string{
	"netdev_stats": {
		"rdma_port_crc_errors_total{", "rdma_port_discards_total{", "rdma_port_frame_errors_total{", "rdma_port_pfc_pause",
		"rdma_port_pfc_sampled_", "rdma_port_pfc_stalled_", "rdma_port_pcs_symbol_errors_total{",
		"rdma_port_priority_discards_total{", "rdma_port_pcie_stall_ratio{", "rdma_port_out_of_buffer_total{",
		"rdma_module_events_total{",
	},
	"pause": {"rdma_port_global_pause_"},
	"fec":   {"rdma_port_fec_"},
	"dcb": {
		"rdma_port_buffer_bytes{", "rdma_port_dcb_pfc_frames_total{", "rdma_port_pfc_capable_priorities{",
		"rdma_port_pfc_enabled", "rdma_port_priority_buffer{",
		"rdma_port_priority_info{", "rdma_port_priority_traffic_class{", "rdma_port_qos_info{", "rdma_port_traffic_class_",
	},
	"devlink_health": {"rdma_device_health_"},
	"module_eeprom":  {"rdma_transceiver_"},
	"link_state":     {"rdma_port_link_down_events_total{", "rdma_port_link_down_reason_info{"},
	"link_modes":     nil, // the test driver has none
}

// testOtherNetwork runs an exporter in another network namespace that has an interface with the name of a port's
// netdev: it exposes nothing of that one, and reports why data is missing.
func testOtherNetwork(t *testing.T, g *guest) {
	const inside = "nsenter --net=/run/netns/away "
	g.must(t, "ip netns add away && "+inside+"ip link set lo up && "+inside+
		"ip link add ens0f0np0 type veth peer name other && "+inside+"ip link set ens0f0np0 up")
	defer g.must(t, "ip netns del away")
	g.must(t, inside+"/tmp/rdma_exporter --no-alerting --collect.no-budget --collector.ebpf=off --state.dir=/tmp/away >"+
		shareMount+"/away.log 2>&1 & echo $! >/tmp/away.pid")
	defer g.must(t, "kill $(cat /tmp/away.pid)")
	eventually(t, func() error {
		host, err := scrape(t.Context(), g.url)
		if err != nil {
			return err
		}
		if output, err := g.run(
			inside + "wget -qO " + shareMount + "/away.prom http://127.0.0.1:" + guestPort + "/metrics",
		); err != nil {
			return okWith(output, err)
		}
		text, err := os.ReadFile(filepath.Join(g.share, "away.prom"))
		if err != nil {
			return err
		}
		away, err := parse(text)
		if err != nil {
			return err
		}
		return fewer(host, away)
	})
	log, err := os.ReadFile(filepath.Join(g.share, "away.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `needs="the network namespace of the host`) {
		t.Errorf("the log does not say what it needs:\n%s", log)
	}
}

// fewer returns an error if the exporter away exposes what that of the host does not, or lacks what it could have.
func fewer(host, away samples) error {
	for key, v := range away {
		if !isOwn(key) && !moves(key) && host[key] != v {
			return fmt.Errorf("%s is %v, the host's exporter says %v", key, v, host[key])
		}
	}
	var lacks []string
	for _, prefixes := range hostNetwork {
		lacks = append(lacks, prefixes...)
	}
	for key := range host {
		_, there := away[key]
		expected := slices.ContainsFunc(lacks, func(p string) bool { return strings.HasPrefix(key, p) })
		switch {
		case !there && !expected && !isOwn(key):
			return fmt.Errorf("lacks %s", key)
		case there && expected:
			return fmt.Errorf("has %s", key)
		}
	}
	want := samples{
		`rdma_detection_unavailable{alert="RDMAPFCStormSource",fault="storm",reason="permission"}`:  1,
		`rdma_detection_unavailable{alert="RDMADeviceFailed",fault="firmware",reason="permission"}`: 1,
	}
	for source := range hostNetwork {
		want[fmt.Sprintf("rdma_scrape_permission_denied{source=%q}", source)] = 1
	}
	if d := away.diff(want); d != "" {
		return fmt.Errorf("%s", d)
	}
	return nil
}

// isOwn reports whether a series is about the exporter, its process or its state directory.
func isOwn(key string) bool {
	return !strings.HasPrefix(key, "rdma_") || slices.ContainsFunc([]string{
		"rdma_scrape_", "rdma_exporter_", "rdma_state_", "rdma_host_maintenance", "rdma_detection_",
	}, func(p string) bool {
		return strings.HasPrefix(key, p)
	})
}

// moves reports whether a series changes by itself, or counts since the start of its exporter.
func moves(key string) bool {
	return slices.ContainsFunc([]string{
		"rdma_host_uptime_seconds{", "rdma_device_data_age_seconds{", "rdma_port_link_transitions_total{",
		"rdma_transceiver_age_seconds{", "rdma_kernel_log_last_event_timestamp_seconds{", "rdma_kernel_log_recent_events{",
		"rdma_kernel_log_overruns_total{", "rdma_kernel_log_skipped_total{",
	}, func(p string) bool { return strings.HasPrefix(key, p) })
}
