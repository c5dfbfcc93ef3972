//go:build e2e

package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dcgmHost is the machine whose GPU utilisation dcgm has. Some of its GPUs have no direct path.
const dcgmHost = "port-down"

// dcgm returns the output of the DCGM exporter 4.3 with its mapping to pods. The real one requires GPUs.
func dcgm(uuids []string) string {
	var b strings.Builder
	b.WriteString("# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n")
	for i, u := range uuids {
		fmt.Fprintf(&b, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=%q,pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=\"NVIDIA H200\",Hostname=%q,DCGM_FI_DRIVER_VERSION=\"580.82.07\",container=\"main\",namespace=\"team-a\",pod=\"trainer-%d\"} %d\n",
			i, u, 16*(i+1), i, dcgmHost, i, 90+i)
	}
	return b.String()
}

// between returns the metrics of samples between rounds. They exist on live hosts, not in a replay.
func between(since time.Time) string {
	n := int(time.Since(since).Seconds())
	port := `device="mlx5_0",port="1",netdev="enp24s0np0"`
	stalls := port + `,direction="transmit",priority="3"`
	gpu := `gpu="0",UUID="GPU-1"`
	var b strings.Builder
	line := func(name, labels string, value int) { fmt.Fprintf(&b, "%s{%s} %d\n", name, labels, value) }
	b.WriteString("# TYPE rdma_port_pfc_paused_sample_ratio histogram\n")
	for le, share := range map[string]int{"0.01": 2, "0.05": 2, "0.1": 2, "0.25": 2, "0.5": 3, "0.9": 3, "+Inf": 4} {
		line("rdma_port_pfc_paused_sample_ratio_bucket", stalls+`,le="`+le+`"`, n*share)
		line("rdma_port_pfc_paused_sample_ratio_bucket",
			strings.Replace(stalls, "transmit", "receive", 1)+`,le="`+le+`"`, n*share)
	}
	line("rdma_port_pfc_sampled_seconds_total", port, n)
	line("rdma_port_pfc_stalled_seconds_total", stalls, n/4)
	line("rdma_gpu_pcie_transmit_bytes_total", gpu, n*1e9)
	line("rdma_gpu_pcie_receive_bytes_total", gpu, n*1e9)
	for _, name := range quiet {
		line(name, port+`,priority="3",direction="receive"`, n)
	}
	for _, name := range rare {
		line(name, `device="mlx5_0",port="1",netdev="enp24s0np0",gpu="0",UUID="GPU-1",reason="no_driver",priority="3",point="reaction",gid_index="1",gid_type="roce_v1",workload="slurm/1"`, 1)
	}
	// The rules record these of a link that is up for 17m.
	link := `device="mlx5_0",port="1"`
	fmt.Fprintf(&b, "port:rdma_link_raw_ber:ratio10m{%s,netdev=\"enp24s0np0\",end=\"own\"} 2e-08\n", link)
	fmt.Fprintf(&b, "port:rdma_link_raw_ber:warning_limit{%s,end=\"own\"} 2.4e-06\n", link)
	fmt.Fprintf(&b, "port:rdma_link_fec:info{%s,mode=\"RS(544,514)\"} 1\n", link)
	// The rules record these of a job on a host that is no replay, of a rollout, and of hours and days.
	ofJob := `,scheduler="slurm",job_id="48121"`
	for name, value := range map[string]int{
		"rdma_port_state_id": 4, "rdma_port_rate_bytes_per_second": 25e9, "rdma_port_expected_rate_bytes_per_second": 50e9,
		"rdma_port_transmit_bytes_total": n * 1e9, "rdma_port_receive_bytes_total": n * 1e9,
		"rdma_port_transmit_packets_total": n * 1e6, "rdma_port_packet_sequence_errors_total": n,
		"rdma_port_transport_retries_exceeded_total": n, "rdma_port_symbol_errors_total": n,
	} {
		line(name, link, value)
	}
	line("rdma_port_job_info", link+ofJob, 1)
	for i := 1; i <= 20; i++ { // more than the idle ports of other machines
		other := fmt.Sprintf("device=\"mlx5_%d\",port=\"1\"", i)
		line("rdma_port_job_info", other+ofJob, 1)
		line("rdma_port_transmit_bytes_total", other, n*1e9)
		line("rdma_port_receive_bytes_total", other, n*1e9)
	}
	line("rdma_gpu_job_info", gpu+ofJob, 1)
	line("rdma_port_pfc_pause_seconds_total", stalls, n/4)
	line("rdma_port_pfc_pause_seconds_total", strings.Replace(stalls, "transmit", "receive", 1), n/4)
	line("rdma_gdr_gpu_transport", gpu+`,state="staging"`, 1)
	line("rdma_gdr_gpu_transport_info",
		gpu+`,workload="slurm/48121",nccl_version="2.27.3",command="python3",reason="tcp"`, 1)
	line("rdma_job_setting_info", `workload="slurm/48121",setting="nccl_ib_disable",value="1"`, 1)
	line("rdma:job_fault", link+`,scheduler="slurm",job_id="48121"`, 1)
	line("rdma:job_symptom", link+`,symptom="port_down",severity="critical"`, 1)
	line("port:rdma_port_job_share:ratio", link+`,scheduler="slurm",job_id="48121"`, 0)
	line("kind:rdma_setting:rollout", `kind="k",affects="setting",setting="mtu",role="compute",value="9000",before="1500"`, 1)
	onSwitch := `switch="leaf1",switch_port="swp1",priority="3"` // by rules --switch-metrics
	line("switch:rdma_switch_pfc_sent:total", onSwitch, n)
	line("switch:rdma_switch_ecn_marked:total", onSwitch, n)
	line("rdma_host_maintenance_end_timestamp_seconds", port, int(since.Unix())+3600)
	line("rdma_exporter_build_info", `version="1",revision="1",goversion="go1",goarch="amd64"`, 1)
	return b.String()
}

// quiet are counters that no recorded machine counts on after its last round, rare are facts that none of those that
// are replayed has.
var (
	quiet = []string{
		"rdma_port_link_error_recoveries_total", "rdma_port_link_downed_total",
		"rdma_port_receive_remote_physical_errors_total", "rdma_port_local_link_integrity_errors_total",
		"rdma_port_link_transitions_total", "rdma_port_crc_errors_total", "rdma_port_pcs_symbol_errors_total",
		"rdma_port_frame_errors_total", "rdma_port_mac_faults_total", "rdma_port_physical_recoveries_total",
		"rdma_port_link_down_events_total", "rdma_port_excessive_buffer_overrun_errors_total",
		"rdma_port_vl15_dropped_total", "rdma_port_out_of_buffer_total", "rdma_port_transmit_constraint_errors_total",
		"rdma_port_receive_constraint_errors_total", "rdma_port_requester_cqe_errors_total",
		"rdma_port_responder_cqe_errors_total", "rdma_port_requester_remote_access_errors_total",
		"rdma_port_requester_remote_invalid_requests_total", "rdma_port_responder_remote_access_errors_total",
		"rdma_port_adaptive_retransmissions_total", "rdma_port_retransmitted_packets_total",
		"rdma_port_neighbour_transmit_wait_ticks_total", "rdma_port_subnet_manager_activity_total",
		"rdma_port_cnp_ignored_total", "rdma_port_global_pause_frames_total", "rdma_port_priority_buffer_discards_total",
		"rdma_port_priority_congestion_discards_total", "rdma_alerting_notifications_sent_total",
		"rdma_alerting_notification_errors_total", "rdma_alerting_notifications_dropped_total",
		"rdma_alerting_rule_failures_total", "rdma_alerting_rounds_total", "rdma_fabric_requests_total",
		"rdma_fabric_request_timeouts_total",
	}
	rare = []string{
		"rdma_host_maintenance", "rdma_gdr_job_gid_info", "rdma_gpu_last_xid", "rdma_port_subnet_manager_state_id",
		"rdma_port_subnet_manager_priority", "rdma_port_pkeys_missing", "rdma_port_miscabled", "rdma_device_missing_info",
		"rdma_scrape_collector_stuck", "rdma_scrape_collector_late", "rdma_alerting_last_round_duration_seconds",
		"rdma_alerting_store_series", "rdma_port_congestion_notification_enabled",
	}
)

// subnet returns the metrics of fabric mode's golden test, with a fault of each kind. Its counters increase.
func subnet(t *testing.T, since time.Time) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "internal/fabric/testdata/fabric.prom"))
	must(t, err)
	n := time.Since(since).Seconds()
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch v, err := strconv.ParseFloat(value, 64); {
		case err != nil: // a comment
			b.WriteString(line)
		case name == "rdma_fabric_sweep_timestamp_seconds":
			fmt.Fprintf(&b, "%s %d\n", name, time.Now().Unix())
		case strings.Contains(name, "_total{"):
			fmt.Fprintf(&b, "%s %f\n", name, v+n)
		default:
			b.WriteString(line)
		}
		if m := fabricLink.FindStringSubmatch(name); m != nil { // recorded of links that are up for 17m
			fmt.Fprintf(&b,
				"link:rdma_fabric_raw_ber:ratio10m{%s} 2e-08\nlink:rdma_fabric_raw_ber:warning_limit{%s} 2.4e-06\n", m[1], m[1])
		}
	}
	return b.String()
}

// fabricLink finds the ports of links.
var fabricLink = regexp.MustCompile(`^rdma_fabric_port_state_id\{(node_guid="[^"]+",port="[^"]+")\}`)
