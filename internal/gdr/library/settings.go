package library

import (
	"slices"
	"strings"
)

// items splits a list at commas, without spaces and empty items.
func items(list string) (out []string) {
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// Transports of UCX (ucp_tl_aliases in src/ucp/core/ucp_context.c): for RDMA, for GPU memory, which UCX takes as host
// memory without them, and for TCP.
var (
	ucxRDMA = []string{
		"all", "ib", "rc", "rc_v", "rc_x", "rc_verbs", "rc_mlx5", "dc", "dc_x", "dc_mlx5", "ud", "ud_v", "ud_x", "ud_verbs",
		"ud_mlx5", "srd", "gga", "gga_mlx5", "rc_gda", "cxi", "efa",
	}
	ucxGPU = []string{"all", "cuda", "cuda_copy", "rocm", "rocm_copy", "ze", "ze_copy"}
	ucxTCP = []string{"all", "tcp"}
)

// ucxSelects reports whether UCX_TLS selects one of some transports. A list that begins with ^ excludes: it excludes
// them all if it has all names of one of the lists.
func ucxSelects(tls string, of []string, excluded ...[]string) bool {
	list, excludes := strings.CutPrefix(strings.TrimSpace(tls), "^")
	given := items(list)
	if len(given) == 0 || excludes {
		return !slices.ContainsFunc(excluded, func(names []string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(given, name) })
		})
	}
	return slices.ContainsFunc(given, func(name string) bool {
		name, _, _ = strings.Cut(strings.TrimPrefix(name, `\`), ":") // \rc: not as an alias; ud:aux
		return slices.Contains(of, name)
	})
}

// ucxNetDevices is whether UCX_NET_DEVICES selects an RDMA device: mlx5_0:1,mlx5_1:1, all, ^mlx5_2:1. Nil: unknown, a
// pattern.
func ucxNetDevices(list string, devices []string) *bool {
	rest, excludes := strings.CutPrefix(strings.TrimSpace(list), "^")
	given := items(rest)
	switch {
	case len(given) == 0, excludes && len(given) < len(devices), slices.Contains(given, "all"):
		return new(true)
	case strings.ContainsAny(rest, "*?["), excludes, len(devices) == 0:
		return nil
	}
	return new(slices.ContainsFunc(given, func(name string) bool {
		name, _, _ = strings.Cut(name, ":")
		return slices.Contains(devices, name)
	}))
}

// fabricWithoutRDMA are providers of libfabric without RDMA, and those that only add features to others
// (fi_provider(7)).
var fabricWithoutRDMA = []string{
	"tcp", "sockets", "udp", "net", "shm", "sm2", "lpp", "ofi_rxm", "ofi_rxd", "ofi_mrail", "ofi_hook_hmem",
}

// fabricWithout reports whether FI_PROVIDER selects providers without RDMA only: tcp, tcp;ofi_rxm.
func fabricWithout(list string) bool {
	given := items(strings.ReplaceAll(list, ";", ","))
	return len(given) > 0 && !slices.ContainsFunc(given, func(name string) bool {
		return !slices.Contains(fabricWithoutRDMA, strings.ToLower(name))
	})
}

// expandable reports whether PyTorch allocates GPU memory in expandable segments: PYTORCH_CUDA_ALLOC_CONF, since 2.9
// also PYTORCH_ALLOC_CONF (c10/core/AllocatorConfig).
func (p *Process) expandable() bool {
	for _, name := range []string{"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"} {
		for _, item := range items(p.Env[name]) {
			if key, value, _ := strings.Cut(item, ":"); strings.TrimSpace(key) == "expandable_segments" {
				return strings.TrimSpace(value) == "True"
			}
		}
	}
	return false
}

// isSet reports whether a variable is in the environment, also with an empty value.
func (p *Process) isSet(name string) bool {
	_, ok := p.Env[name]
	return ok
}

// yes and no are values of boolean variables of UCX and NVSHMEM.
func yes(value string) bool {
	return slices.Contains([]string{"1", "y", "yes", "on", "true"}, strings.ToLower(value))
}

func no(value string) bool {
	return slices.Contains([]string{"0", "n", "no", "off", "false"}, strings.ToLower(value))
}
