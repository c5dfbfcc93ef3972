//go:build e2e

package dashboards

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dcgmHost is the machine whose GPU utilisation dcgm has. Some of its GPUs have no direct path.
const dcgmHost = "port-down"

// dcgm is the metrics of the DCGM exporter. The real one requires GPUs.
func dcgm(uuids []string) string {
	var b strings.Builder
	b.WriteString("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n")
	for i, u := range uuids {
		fmt.Fprintf(&b, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=%q,device=\"nvidia%d\",modelName=\"NVIDIA H200\",Hostname=%q,pod=\"trainer-%d\"} %d\n", i, u, i, dcgmHost, i, 90+i)
	}
	return b.String()
}

// between is the metrics of samples between rounds. They exist on live hosts, not in a replay.
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
		line("rdma_port_pfc_paused_sample_ratio_bucket", strings.Replace(stalls, "transmit", "receive", 1)+`,le="`+le+`"`, n*share)
	}
	line("rdma_port_pfc_sampled_seconds_total", port, n)
	line("rdma_port_pfc_stalled_seconds_total", stalls, n/4)
	line("rdma_gpu_pcie_transmit_bytes_total", gpu, n*1e9)
	line("rdma_gpu_pcie_receive_bytes_total", gpu, n*1e9)
	line("rdma_exporter_build_info", `version="1",revision="1",goversion="go1",goarch="amd64"`, 1)
	return b.String()
}

// subnet is the metrics of fabric mode's golden test, with a fault of each kind. Its counters increase.
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
	}
	return b.String()
}
