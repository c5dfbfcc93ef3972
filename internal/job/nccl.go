package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/proc"
	"rdma_exporter/internal/nccl"
)

// NCCL is what NCCL reports about a job. It is evidence, not a verdict: it has reported OK during hangs.
type NCCL struct {
	Asked    bool         `json:"asked"`
	Address  string       `json:"address,omitempty"`
	Why      string       `json:"why,omitempty"`           // not asked, or without an answer
	Verified bool         `json:"verified"`                // the answer lists a process of the job on this host
	Users    []int        `json:"listener_uids,omitempty"` // of programs that listen on the port; any local user may
	Answer   *nccl.Answer `json:"answer,omitempty"`
}

type ncclQuery = func(ctx context.Context, address string, job nccl.Local) (*nccl.Answer, error)

// Ask sends the query, and adds the users that listen on the port.
func (w *NCCL) Ask(ctx context.Context, query ncclQuery, f host.Files, job nccl.Local) {
	if _, port, err := net.SplitHostPort(w.Address); err == nil {
		w.Users = netlink.ListenerUIDs(f, port)
		slices.Sort(w.Users)
		w.Users = slices.Compact(w.Users)
	}
	a, err := query(ctx, w.Address, job)
	switch {
	case errors.Is(err, nccl.ErrNone):
		w.Why = err.Error() + ": NCCL is older than 2.24, or NCCL_RAS_ENABLE=0, or it runs in another network namespace"
	case err != nil:
		w.Why = err.Error()
	default:
		w.Answer, w.Verified = a, len(a.Local) > 0
	}
}

// Plan decides whether NCCL is asked about the job, and at which address.
func (r *Row) Plan(f host.Files, given string, addresses []netip.Addr) *NCCL {
	var why []string
	at := given
	for _, p := range r.Processes {
		if !p.process.HasNCCL {
			continue
		}
		reason, address := "", p.process.Env["NCCL_RAS_ADDR"]
		switch same, known := proc.SameNetwork(f, p.PID); {
		case p.NCCL != "" && !nccl.HasRAS(p.NCCL):
			reason = "NCCL " + p.NCCL + " has no RAS service (2.24 and later)"
		case p.process.Env["NCCL_RAS_ENABLE"] == "0":
			reason = "NCCL_RAS_ENABLE=0 in the job"
		case known && !same:
			reason = "its processes are in another network namespace"
		case given == "" && address != "" && !isLocal(address, addresses):
			reason = "NCCL_RAS_ADDR of the job is no address of this host: --nccl-ras selects one"
		default:
			at, _ = RASAddress(cmp.Or(at, address))
			return &NCCL{Asked: true, Address: at}
		}
		if !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	switch {
	case len(r.Processes) == 0: // they are hidden: the answer cannot be verified
		at, _ = RASAddress(at)
		return &NCCL{Asked: true, Address: at}
	case len(why) == 0:
		why = []string{"no visible process of it has NCCL loaded"}
	}
	return &NCCL{Why: strings.Join(why, "; ")}
}

// PIDs returns the processes of the job with NCCL, in their own PID namespaces.
func (r *Row) PIDs(f host.Files) (out []int) {
	for _, p := range r.Processes {
		if p.process.HasNCCL {
			out = append(out, proc.InnerPID(f, p.PID))
		}
	}
	return out
}

// RASAddress returns an address of the service: NCCL's without one.
func RASAddress(text string) (string, error) {
	if text == "" {
		return nccl.DefaultAddress, nil
	}
	name, port, err := net.SplitHostPort(text)
	n, failed := strconv.ParseUint(port, 10, 16)
	if err != nil || failed != nil || n == 0 || name == "" {
		return "", errors.New("must be HOST:PORT such as " + nccl.DefaultAddress)
	}
	return text, nil
}

// isLocal reports whether a job's address is of this host. A job could name any other.
func isLocal(text string, addresses []netip.Addr) bool {
	if _, err := RASAddress(text); err != nil {
		return false
	}
	name, _, _ := net.SplitHostPort(text)
	a, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && (a.IsLoopback() || slices.Contains(addresses, a.Unmap().WithZone("")))
}

// HostAddresses returns the addresses of the interfaces of this network namespace.
func HostAddresses() (out []netip.Addr) {
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil {
			out = append(out, p.Addr().Unmap().WithZone(""))
		}
	}
	return out
}

// Problem returns a problem in one line, with up to 8 of its ranks or processes.
func Problem(p *nccl.Problem) string {
	const shown = 8
	of := ""
	if p.Communicator != "" {
		of = " communicator " + p.Communicator
	}
	line := fmt.Sprintf("%s%s: %s: %d", p.Kind, of, p.What, p.Count)
	var members []string
	for _, m := range p.Members[:min(shown, len(p.Members))] {
		var words []string
		if m.Rank != nil {
			words = append(words, "rank "+strconv.Itoa(*m.Rank))
		}
		if m.PID > 0 {
			words = append(words, fmt.Sprintf("process %d on %s", m.PID, cmp.Or(m.Host, "an unknown host")))
		}
		if m.GPU != "" {
			words = append(words, "GPU "+m.GPU)
		}
		members = append(members, strings.Join(words, " "))
	}
	if len(members) == 0 {
		return line
	}
	if p.Count > len(members) {
		members = append(members, "…")
	}
	return line + ": " + strings.Join(members, "; ")
}
