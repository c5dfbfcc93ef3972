package collector

import (
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
)

// readOFED reads the netdev files of MLNX_OFED. A firmware error shows as an empty file.
func readOFED(r *reading.Reader, q *snapshot.NetdevQoS) {
	r.Begin(host.SourceRoCEConfig)
	dir := netDir + q.Name
	if t := r.Optional(dir + "/qos/trust"); t != "" {
		q.Trust = t
	}
	if _, err := r.Host.Files.List(dir + "/ecn"); err != nil {
		return
	}
	for p := range snapshot.Priorities {
		name := strconv.Itoa(p)
		q.Notification[p] = r.Count(dir + "/ecn/roce_np/enable/" + name)
		q.Reaction[p] = r.Count(dir + "/ecn/roce_rp/enable/" + name)
	}
	q.CNPDSCP = r.Count(dir + "/ecn/roce_np/cnp_dscp")
	q.CNPPriority = r.Count(dir + "/ecn/roce_np/cnp_802p_prio")
}

// readTrafficClass reads the traffic class set for all RoCE packets of a port; those for single addresses are left out.
// An empty file: none is set.
func readTrafficClass(r *reading.Reader, device string, n int) *uint64 {
	return globalTrafficClass(r.Optional(classDir + "/" + device + "/tc/" + strconv.Itoa(n) + "/traffic_class"))
}

// globalTrafficClass reads lines such as "Global tclass=106" and "src_ip=…,dst_ip=…,tclass=96".
func globalTrafficClass(text string) *uint64 {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), "Global tclass=")
		if n, err := strconv.ParseUint(value, 10, 8); ok && err == nil {
			return &n
		}
	}
	return nil
}
