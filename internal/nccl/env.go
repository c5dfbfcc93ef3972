package nccl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/pci"
)

// Env is the NCCL settings in force.
type Env map[string]string

// With adds settings of lower precedence: the environment overrides ~/.nccl.conf or NCCL_CONF_FILE, which overrides
// /etc/nccl.conf (initEnv, src/misc/param.cc).
func (e Env) With(lower Env) Env {
	out := Env{}
	for _, from := range []Env{lower, e} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}

// ParseConf parses nccl.conf: lines NAME=VALUE, comments begin with # (setEnvFile, src/misc/param.cc).
func ParseConf(text string) Env {
	e := Env{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			if _, twice := e[name]; !twice {
				e[name] = value
			}
		}
	}
	return e
}

// Integer returns a setting that NCCL reads with strtoll in base 0; other text counts as unset (ncclLoadParam).
func (e Env) Integer(name string, unset int64) int64 {
	if n, err := strconv.ParseInt(e[name], 0, 64); err == nil {
		return n
	}
	return unset
}

// levels are the path types of NCCL in its order (src/include/graph.h), by which limits are compared.
var levels = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// Level orders distances, the nearest first. An unknown one is last.
func Level(d pci.Distance) int {
	for i, name := range levels {
		if name == string(d) {
			return i
		}
	}
	return len(levels)
}

// oldLevels are the meanings of the earlier numeric values of NCCL_NET_GDR_LEVEL, 0 to 5 and above.
var oldLevels = []string{"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"}

// GDRLevel returns the limit set by NCCL_NET_GDR_LEVEL, as ordered by Level: a name or an old number; other text sets
// none (ncclGetLevel, src/graph/paths.cc).
func (e Env) GDRLevel() (limit int, ok bool) {
	text := e["NCCL_NET_GDR_LEVEL"]
	if l := Level(pci.Distance(text)); l < len(levels) {
		return l, true
	}
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.Atoi(digits)
	if err != nil {
		n = 0
	}
	return Level(pci.Distance(oldLevels[min(n, len(oldLevels)-1)])), true
}

// HCAs returns the items of NCCL_IB_HCA, see HCA: [^][=]NAME[:PORT],… excluded: these are the ones not to use; exact:
// names are not prefixes (parseStringList and matchIfList, src/misc/socket.cc and utils.cc).
func (e Env) HCAs() (items []string, excluded, exact bool) {
	text, excluded := strings.CutPrefix(e["NCCL_IB_HCA"], "^")
	text, exact = strings.CutPrefix(text, "=")
	for item := range strings.SplitSeq(text, ",") {
		if item != "" {
			items = append(items, item)
		}
	}
	return items, excluded, exact
}

// HCA returns the device and the port of an item of NCCL_IB_HCA: NAME, NAME:PORT or, with an NCCL that has rails,
// NAME:PORT:RAIL:PLANE. An empty port is any.
func HCA(item string) (name, port string) {
	name, rest, _ := strings.Cut(item, ":")
	port, _, _ = strings.Cut(rest, ":")
	return name, port
}

// AllowsPort reports whether NCCL_IB_HCA lets NCCL use a port of a device.
func (e Env) AllowsPort(device string, port int) bool {
	items, excluded, exact := e.HCAs()
	for _, item := range items {
		name, number := HCA(item)
		same := name == device || !exact && strings.HasPrefix(device, name)
		if same && cmp.Or(number, strconv.Itoa(port)) == strconv.Itoa(port) {
			return !excluded
		}
	}
	return excluded || len(items) == 0
}

// worlds are the variables in which launchers give the processes of a job and those of them on this host, innermost
// launcher first, since each of several hosts may run a job of its own: torchrun (torch/distributed/elastic), Open MPI
// and the MPI operator of Kubernetes (mpirun(1)), MVAPICH2, Hydra of MPICH and Intel MPI, JSM of LSF.
var worlds = []struct{ all, here string }{
	{"WORLD_SIZE", "LOCAL_WORLD_SIZE"},
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},
	{"PMI_SIZE", "MPI_LOCALNRANKS"},
	{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_SIZE"},
}

// allocations are the variables in which schedulers give the nodes of a job: the PyTorch operator of Kubernetes (a
// range is no number), Flux, Slurm, Torque, Grid Engine.
var allocations = []string{"PET_NNODES", "FLUX_JOB_NNODES", "SLURM_JOB_NUM_NODES", "PBS_NUM_NODES", "NHOSTS"}

// NodeVariables returns the names of the variables that Nodes reads.
func NodeVariables() []string {
	names := slices.Clone(allocations)
	for _, w := range worlds {
		names = append(names, w.all, w.here)
	}
	return names
}

// Nodes returns the number of nodes of the job: 0 is unknown, 2 is two or more. The launcher takes precedence over the
// allocation, since torchrun may run separately on each of several nodes. A missing variable proves nothing: the kernel
// exposes the environment at the start of the program.
func (e Env) Nodes() int {
	for _, w := range worlds {
		all, here := e.count(w.all), e.count(w.here)
		switch {
		case here > 0 && all > here:
			return 2
		case here > 0 && all == here:
			return 1
		}
	}
	for _, name := range allocations {
		if n := e.count(name); n > 0 {
			return min(2, n)
		}
	}
	return 0
}

// count returns a number set by a scheduler; 0: none.
func (e Env) count(name string) int {
	n, err := strconv.Atoi(e[name])
	if err != nil {
		return 0
	}
	return max(0, n)
}
