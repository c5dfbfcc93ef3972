package gpudirect

import (
	"bytes"
	"context"
	"strings"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// bufinfoInterval is the least time between two reads: the kernel takes the lock of each DMA-BUF and blocks jobs.
	bufinfoInterval = 10 * time.Minute
	bufinfoTime     = 50 * time.Millisecond // of one read
)

// bufinfo is the list of DMA-BUFs of the host, read only on suspicion of staging.
type bufinfo struct {
	on       bool // --collector.gdr.bufinfo
	tried    reading.Last
	attached map[string]uint64 // buffers of GPUs by address of the device that is attached; nil: not known
	failed   []snapshot.Issue  // of the last read
}

// refresh reads the list if it is due. The result, or the failure, is used until the next read.
func (b *bufinfo) refresh(ctx context.Context, h *host.Host, n *snapshot.Node, suspected bool) {
	if !b.on || !suspected {
		return
	}
	if now := h.Now(); b.tried.Due(now, bufinfoInterval) {
		b.tried.Read(now)
		b.attached, b.failed = nil, nil
		b.read(ctx, h)
	}
	n.Issues = append(n.Issues, b.failed...)
}

func (b *bufinfo) read(ctx context.Context, h *host.Host) {
	ctx, cancel := context.WithTimeout(ctx, bufinfoTime)
	defer cancel()
	var text []byte
	var whole bool
	if err := reading.Request(ctx, h, "bufinfo", source.Bufinfo, func() (err error) {
		text, whole, err = h.Files.Head(host.BufinfoFile, host.BufinfoSize)
		return err
	}); err != nil {
		b.failed = []snapshot.Issue{reading.IssueOf(source.Bufinfo, err)}
		return
	}
	found, complete := parseBufinfo(text)
	if whole && complete || len(found) > 0 { // a partial list without any is no evidence
		b.attached = found
	}
}

// of returns the number of GPU buffers with an attached device that is none of these GPUs, as of the last read; nil if
// unknown.
func (b *bufinfo) of(now time.Time, gpus []gdrGPU) *uint64 {
	if b.attached == nil || b.tried.Due(now, bufinfoInterval+meterSpan) {
		return nil
	}
	var n uint64
	for address, count := range b.attached {
		if !contains(gpus, address) {
			n += count
		}
	}
	return &n
}

func contains(gpus []gdrGPU, address string) bool {
	for i := range gpus {
		if gpus[i].Address == address {
			return true
		}
	}
	return false
}

// parseBufinfo counts attachments to the buffers that the GPU driver exports, by device. Each buffer is a line of its
// size, flags, mode, count, exporter, inode and name, behind tabs; then "Attached Devices:", a device a line, and
// "Total N devices attached" (dma_buf_debug_show, drivers/dma-buf/dma-buf.c). The last line of all is "Total N objects,
// M bytes".
func parseBufinfo(text []byte) (attached map[string]uint64, complete bool) {
	attached = map[string]uint64{}
	gpu, devices := false, false
	for line := range bytes.Lines(text) {
		words := strings.Fields(string(line))
		switch {
		case len(words) >= 5 && words[0] == "Total" && words[2] == "objects,":
			complete = true
		case len(words) > 0 && words[0] == "Total":
			gpu, devices = false, false
		case len(words) == 2 && words[0] == "Attached" && words[1] == "Devices:":
			devices = true
		case devices && len(words) == 1:
			if gpu {
				attached[words[0]]++
			}
		case len(words) >= 6 && line[0] != '\t':
			gpu, devices = words[4] == "nvidia" || words[4] == accel.ExporterNVIDIA, false
		}
	}
	return attached, complete
}
