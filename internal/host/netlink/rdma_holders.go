package netlink

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// Holders makes two queries. The core answers from its own lists: no in-tree driver makes a firmware call for a context
// or a region. With qps it makes a third one, for which the core calls query_qp of the driver once per queue pair
// (fill_res_qp_entry, core/nldev.c). Resources of the kernel are left out. The kernel reports the thread that created a
// resource; it is mapped to its process.
func (c *RDMAClient) Holders(_ context.Context, device string, qps bool) ([]host.RDMAHolder, error) {
	m := makers{leader: c.Leader, pids: map[int]int{}, found: map[int]*host.RDMAHolder{}}
	lists := []resourceList{
		{nldevCmdResCtxGet, nldevAttrResCtx, nldevAttrResCtxEntry, func(r resource) { m.of(r.pid).Contexts++ }},
		{nldevCmdResMRGet, nldevAttrResMR, nldevAttrResMREntry, func(r resource) {
			h := m.of(r.pid)
			h.Regions++
			h.RegionBytes += r.length
		}},
	}
	if qps {
		lists = append(lists, resourceList{nldevCmdResQPGet, nldevAttrResQP, nldevAttrResQPEntry, func(r resource) {
			h := m.of(r.pid)
			if h.QPs == nil {
				h.QPs = new(uint64)
			}
			*h.QPs++
		}})
	}
	for _, list := range lists {
		if err := c.dump(list, device); err != nil {
			return nil, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/holders", device), Err: err}
		}
	}
	out := []host.RDMAHolder{}
	for _, h := range m.found {
		if qps && h.QPs == nil {
			h.QPs = new(uint64)
		}
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b host.RDMAHolder) int { return cmp.Compare(a.PID, b.PID) })
	return out, nil
}

// makers are the processes that have created resources. Each thread is mapped to its process once, whatever the number
// of its resources.
type makers struct {
	leader func(tid int) int // nil: not determined
	pids   map[int]int       // by thread
	found  map[int]*host.RDMAHolder
}

func (m *makers) of(tid int) *host.RDMAHolder {
	pid, known := m.pids[tid]
	if !known {
		pid = tid
		if m.leader != nil && tid != 0 {
			pid = m.leader(tid)
		}
		m.pids[tid] = pid
	}
	if m.found[pid] == nil {
		m.found[pid] = &host.RDMAHolder{PID: pid}
	}
	return m.found[pid]
}

// resourceList is a command that lists resources of a device, the nested attributes of its answer, and the handler of
// an entry.
type resourceList struct {
	cmd          int
	table, entry uint16
	each         func(resource)
}

// dump lists resources. For a device without any there is no message.
func (c *RDMAClient) dump(list resourceList, device string) error {
	var all []resource
	err := c.addressed(list.cmd, unix.NLM_F_DUMP, device, func(msgs [][]byte) (string, error) {
		all = nil
		for _, m := range msgs {
			found, name, err := parseResources(m, list.table, list.entry)
			if err != nil || name != device {
				return name, err
			}
			all = append(all, found...)
		}
		return device, nil
	})
	for _, r := range all {
		list.each(r)
	}
	return err
}

// resource is a context, a memory region or a queue pair of a process.
type resource struct {
	pid    int    // of the thread that created it; 0: not sent
	length uint64 // bytes, of a region
}

// parseResources skips resources of the kernel. They have a name instead of a process.
func parseResources(msg []byte, table, entry uint16) (found []resource, device string, err error) {
	for t, v := range eachAttribute(msg) {
		switch t {
		case nl.RDMA_NLDEV_ATTR_DEV_NAME:
			device = rooted.Text(v)
		case table:
			for t, v := range eachAttribute(v) {
				if r, user := parseResource(v); t == entry && user {
					found = append(found, r)
				}
			}
		}
	}
	if device == "" {
		return nil, "", fmt.Errorf("%w: resources without device", access.ErrMalformed)
	}
	return found, device, nil
}

func parseResource(b []byte) (r resource, user bool) {
	user = true
	for t, v := range eachAttribute(b) {
		n, ok := parseNumber(v)
		switch {
		case t == nldevAttrResKernName:
			user = false
		case t == nldevAttrResPID && ok && n <= 1<<31-1:
			r.pid = int(n)
		case t == nldevAttrResMRLen && ok:
			r.length = n
		}
	}
	return r, user
}
