package report

import (
	"context"
	"slices"
	"time"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

// Status of a device in "inventory list".
const (
	statusPresent   = "present"
	statusElsewhere = "not here" // in a container or virtual machine, or excluded: not evaluated
	statusMissing   = "missing"  // with the reason
)

// deviceRow is a line of "inventory list".
type deviceRow struct {
	expect.FunctionRecord
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Inventory is the command inventory list, with its flags.
type Inventory struct{ listFlags }

// Run prints the known devices.
func (l *Inventory) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	p, memory, err := c.Observe(ctx, std.Log, "infiniband")
	if err != nil {
		return command.Usage(err)
	}
	rows := deviceRows(p.Node().InfiniBand, words.AllForeign(memory.Data()).Functions)
	t := command.Table{}
	t.Row("PCI ADDRESS", "DEVICE", "NODE GUID", "DRIVER", "BOARD", "STATUS", "FIRST SEEN", "LAST SEEN")
	for _, r := range rows {
		status := r.Status
		if r.Reason != "" {
			status += ": " + r.Reason
		}
		day := func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return t.UTC().Format(time.DateOnly)
		}
		t.Row(r.PCIAddress, r.Device, r.NodeGUID, r.Driver, r.BoardID, status, day(r.FirstSeen), day(r.LastSeen))
	}
	return command.OK, command.Print(std, l.json, rows, nil, t.Print)
}

// deviceRows returns the known devices, present or not, and pinned ones that were never present.
func deviceRows(n *snapshot.InfiniBand, known map[string]expect.FunctionRecord) (out []deviceRow) {
	for _, f := range known {
		r := deviceRow{FunctionRecord: f, Status: statusElsewhere}
		if slices.ContainsFunc(n.Devices, func(d snapshot.Device) bool { return d.PCIAddress == f.PCIAddress }) {
			r.Status = statusPresent
		}
		out = append(out, r)
	}
	for _, m := range n.Missing {
		i := slices.IndexFunc(out, func(r deviceRow) bool { return m.PCIAddress != "" && r.PCIAddress == m.PCIAddress })
		if i < 0 {
			i, out = len(out),
				append(out, deviceRow{FunctionRecord: expect.FunctionRecord{Device: m.Name, PCIAddress: m.PCIAddress}})
		}
		out[i].Status, out[i].Reason = statusMissing, m.Reason
	}
	slices.SortFunc(out, func(a, b deviceRow) int {
		return slices.Compare([]string{a.PCIAddress, a.Device}, []string{b.PCIAddress, b.Device})
	})
	return out
}
