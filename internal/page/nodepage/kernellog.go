package nodepage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/words"
)

// kernelMessage is the last message of the kernel log of one kind about an object.
type kernelMessage struct {
	Time, SinceBoot, Object, Text string
	Count                         uint64
}

// maxKernelMessages limits the messages in the table.
const maxKernelMessages = 20

// listKernelMessages returns the last message of each kind and object, the newest first.
func listKernelMessages(n *snapshot.Node) (out []kernelMessage) {
	if n == nil || n.KernelLog == nil {
		return nil
	}
	counts := slices.Clone(n.KernelLog.Counts)
	slices.SortStableFunc(counts, func(a, b hostdata.KernelLogCount) int { return cmp.Compare(b.SinceBoot, a.SinceBoot) })
	for _, c := range counts[:min(len(counts), maxKernelMessages)] {
		m := kernelMessage{
			Time: "unknown", SinceBoot: formatSinceBoot(c.SinceBoot), Count: c.Count,
			Object: exposition.ValidLabel(words.Join(" ", c.Device, c.PCIAddress)),
		}
		if !c.At.IsZero() {
			m.Time = c.At.UTC().Format("2 Jan 15:04:05")
		}
		m.Object = cmp.Or(m.Object, "host")
		m.Text = page.Shorten(
			exposition.ValidLabel(words.Join(", ", words.Join(" ", c.Driver, words.Spaced(c.Kind)), c.Detail)), page.MaxText)
		out = append(out, m)
	}
	return out
}

// formatSinceBoot formats a duration as "12d 3h 4m 5.6s", without leading zeros.
func formatSinceBoot(d time.Duration) string {
	var b strings.Builder
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit || b.Len() > 0 {
			fmt.Fprintf(&b, "%d%s ", d/u.unit, u.name)
			d %= u.unit
		}
	}
	fmt.Fprintf(&b, "%.1fs", d.Seconds())
	return b.String()
}
