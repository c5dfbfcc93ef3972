package capture

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
)

// Processes that use an RDMA device are stored one per line: "PID: contexts=1 regions=212 bytes=868220928".

func holdersPath(device string) string { return "rdma/" + device + "/holders" }

func encodeHolders(holders []host.RDMAHolder) []byte {
	var b bytes.Buffer
	for _, h := range holders {
		fmt.Fprintf(&b, "%d: contexts=%d regions=%d bytes=%d\n", h.PID, h.Contexts, h.Regions, h.RegionBytes)
	}
	return b.Bytes()
}

func decodeHolders(path string, data []byte) ([]host.RDMAHolder, error) {
	out := []host.RDMAHolder{}
	err := lines(path, data, func(name, value string) error {
		pid, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			return err
		}
		h := host.RDMAHolder{PID: int(pid)}
		to := map[string]*uint64{"contexts": &h.Contexts, "regions": &h.Regions, "bytes": &h.RegionBytes}
		for word := range strings.FieldsSeq(value) {
			key, number, _ := strings.Cut(word, "=")
			if to[key] == nil {
				return host.ErrMalformed
			}
			if *to[key], err = strconv.ParseUint(number, 10, 64); err != nil {
				return err
			}
		}
		out = append(out, h)
		return nil
	})
	return out, err
}

// Holders records the answer.
func (r *Recorder) Holders(ctx context.Context, device string) ([]host.RDMAHolder, error) {
	a, err := r.inner.RDMA.Holders(ctx, device)
	r.answer(holdersPath(device), encodeHolders(a), err)
	return a, err
}

// Holders returns the recorded answer.
func (p *Player) Holders(_ context.Context, device string) ([]host.RDMAHolder, error) {
	name := holdersPath(device)
	b, err := p.Read(name, nil)
	if err != nil {
		return nil, err
	}
	return decodeHolders(name, b)
}
