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
	m := makers{processes{c.Leader, map[int]int{}}, map[int]*host.RDMAHolder{}}
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
		found, err := dump(c, list.cmd, list.table, list.entry, device, parseResource)
		if err != nil {
			return nil, &access.Error{Op: "query", Path: fmt.Sprintf("rdma/%s/holders", device), Err: err}
		}
		for _, r := range found {
			list.each(r)
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

// processes maps threads to their processes, each once, whatever the number of its resources.
type processes struct {
	leader func(tid int) int // nil: not determined
	pids   map[int]int       // by thread
}

func (p *processes) processOf(tid int) int {
	pid, known := p.pids[tid]
	if !known {
		pid = tid
		if p.leader != nil && tid != 0 {
			pid = p.leader(tid)
		}
		p.pids[tid] = pid
	}
	return pid
}

// makers are the processes that have created resources.
type makers struct {
	processes
	found map[int]*host.RDMAHolder
}

func (m *makers) of(tid int) *host.RDMAHolder {
	pid := m.processOf(tid)
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

// dump lists resources of a device, those that parse takes. For a device without any there is no message.
func dump[T any](
	c *RDMAClient, cmd int, table, entry uint16, device string, parse func([]byte) (T, bool),
) (all []T, err error) {
	err = c.addressed(cmd, unix.NLM_F_DUMP, device, func(msgs [][]byte) (string, error) {
		all = nil
		for _, m := range msgs {
			found, name, err := parseResources(m, table, entry, parse)
			if err != nil || name != device {
				return name, err
			}
			all = append(all, found...)
		}
		return device, nil
	})
	return all, err
}

// resource is a context, a memory region or a queue pair of a process.
type resource struct {
	pid    int    // of the thread that created it; 0: not sent
	length uint64 // bytes, of a region
}

func parseResources[T any](
	msg []byte, table, entry uint16, parse func([]byte) (T, bool),
) (found []T, device string, err error) {
	for t, v := range eachAttribute(msg) {
		switch t {
		case nl.RDMA_NLDEV_ATTR_DEV_NAME:
			device = rooted.Text(v)
		case table:
			for t, v := range eachAttribute(v) {
				if r, ok := parse(v); t == entry && ok {
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

// parseResource returns false for a resource of the kernel. These have a name instead of a process.
func parseResource(b []byte) (r resource, user bool) {
	user = true
	for t, v := range eachAttribute(b) {
		n, ok := parseNumber(v)
		switch {
		case t == nldevAttrResKernName:
			user = false
		case t == nldevAttrResPID && ok && n <= mostPID:
			r.pid = int(n)
		case t == nldevAttrResMRLen && ok:
			r.length = n
		}
	}
	return r, user
}
