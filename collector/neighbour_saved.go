package collector

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lldp"
	"rdma_exporter/internal/reading"
)

// savedDir is where systemd-networkd before version 256 saves received frames, one file per interface index. Later
// versions have Varlink only.
const savedDir = "run/systemd/netif/lldp/"

// mostNeighbours bounds the neighbours of one netdev, at the limit of sd_lldp_rx.
const mostNeighbours = 128

// savedNeighbours reads the neighbours of an interface. networkd removes expired ones while it runs.
func savedNeighbours(r *reading.Reader, index uint64) (out []farEnd) {
	r.Begin(host.SourceLLDP)
	path := savedDir + strconv.FormatUint(index, 10)
	r.Ask(1)
	b, err := r.Host.Files.Read(path, nil)
	if err != nil {
		r.IssueUnless(err, host.Absent)
		return nil
	}
	frames, whole := savedFrames(b)
	for _, f := range frames {
		n, err := lldp.Parse(f)
		if err != nil {
			whole = false
			continue
		}
		if n.TTL > 0 {
			out = append(out, announcedEnd(&n, time.Time{}))
		}
	}
	if !whole {
		r.Issue(host.ErrGarbled(path, b))
	}
	slices.SortStableFunc(out, byLikelihood)
	return out
}

// savedFrames returns the frames in a file: each after its length in 64 bits, little-endian (systemd, link_lldp_save).
func savedFrames(b []byte) (out [][]byte, whole bool) {
	for len(b) > 0 && len(out) < mostNeighbours {
		if len(b) < 8 {
			return out, false
		}
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			return out, false
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return out, len(b) == 0
}
