package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// RDMAHolder is a process that uses a device: what it has made there, as RDMA netlink lists it.
type RDMAHolder struct {
	// PID is in this process's PID namespace; 0 stands for all those that cannot be seen from it or whose maker has ended.
	PID         int
	Contexts    uint64
	Regions     uint64 // memory regions
	RegionBytes uint64
}

// Holders asks twice. The core answers from its own lists: no driver in the tree asks firmware for a context or a region. What the
// kernel made for itself is left out. It tells the thread that made each, by its number; the process is that of the thread.
func (c *rdmaClient) Holders(_ context.Context, device string) ([]RDMAHolder, error) {
	m := makers{leader: c.leader, pids: map[int]int{}, found: map[int]*RDMAHolder{}}
	for _, list := range []resourceList{
		{nldevCmdResCtxGet, nldevAttrResCtx, nldevAttrResCtxEntry, func(r resource) { m.of(r.pid).Contexts++ }},
		{nldevCmdResMRGet, nldevAttrResMR, nldevAttrResMREntry, func(r resource) {
			h := m.of(r.pid)
			h.Regions++
			h.RegionBytes += r.length
		}},
	} {
		if err := c.dump(list, device); err != nil {
			return nil, &Error{"ask", fmt.Sprintf("rdma/%s/holders", device), err}
		}
	}
	out := []RDMAHolder{}
	for _, h := range m.found {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b RDMAHolder) int { return cmp.Compare(a.PID, b.PID) })
	return out, nil
}

// makers are the processes that have made resources. Which process a thread is of is asked once, however much the thread has made.
type makers struct {
	leader func(tid int) int // nil: not asked
	pids   map[int]int       // by thread
	found  map[int]*RDMAHolder
}

func (m *makers) of(tid int) *RDMAHolder {
	pid, known := m.pids[tid]
	if !known {
		pid = tid
		if m.leader != nil && tid != 0 {
			pid = m.leader(tid)
		}
		m.pids[tid] = pid
	}
	if m.found[pid] == nil {
		m.found[pid] = &RDMAHolder{PID: pid}
	}
	return m.found[pid]
}

// resourceList is a command that lists resources of a device, the nested attributes of its answer, and who takes each.
type resourceList struct {
	cmd          int
	table, entry uint16
	each         func(resource)
}

// dump lists resources. A device without any has no message at all.
func (c *rdmaClient) dump(list resourceList, device string) error {
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

// resource is a context or a memory region of a process.
type resource struct {
	pid    int    // of the thread that made it; 0: not told
	length uint64 // bytes, of a region
}

// parseResources leaves out those of the kernel, which have a name in place of a process.
func parseResources(msg []byte, table, entry uint16) (found []resource, device string, err error) {
	for t, v := range attrs(msg) {
		switch t {
		case nldevAttrDevName:
			device = text(v)
		case table:
			for t, v := range attrs(v) {
				if r, user := parseResource(v); t == entry && user {
					found = append(found, r)
				}
			}
		}
	}
	if device == "" {
		return nil, "", fmt.Errorf("%w: resources without their device", ErrMalformed)
	}
	return found, device, nil
}

func parseResource(b []byte) (r resource, user bool) {
	user = true
	for t, v := range attrs(b) {
		n, ok := number(v)
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

// leader is the process that a thread is of, by /proc/TID/status; the thread's own number where that cannot be read.
func (t *tree) leader(tid int) int {
	b, err := t.Read("proc/"+strconv.Itoa(tid)+"/status", nil)
	if err != nil {
		return tid
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil && pid > 0 {
				return pid
			}
		}
	}
	return tid
}
