package gdr

import (
	"cmp"
	"strconv"
	"strings"

	"rdma_exporter/internal/pci"
)

// Job is a process that uses NCCL, or one that might.
type Job struct {
	NCCL   string // version of the library, 2.22.3; empty where it is not known, which is judged as a current one
	Env    Env
	Plugin bool // a net plugin is loaded
	// Topology is that of the job's own NCCL_TOPO_FILE; nil: the machine's.
	Topology *Topology
}

// Env is the settings of NCCL in force.
type Env map[string]string

// With adds settings of a lower rank: the environment stands above ~/.nccl.conf or the file that NCCL_CONF_FILE names, and that above
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

// ParseConf reads nccl.conf: lines NAME=VALUE; a line that begins with # is none (setEnvFile, src/misc/param.cc).
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

// integer is a setting that NCCL reads with strtoll in base 0; what is no number is not set (ncclLoadParam).
func (e Env) integer(name string, unset int64) int64 {
	if n, err := strconv.ParseInt(e[name], 0, 64); err == nil {
		return n
	}
	return unset
}

// levels are the kinds of paths in NCCL's order (src/include/graph.h): the number is what limits are compared by.
var levels = []string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// Level orders distances, the nearest first. One that is not known is beyond all.
func Level(d pci.Distance) int {
	for i, name := range levels {
		if name == string(d) {
			return i
		}
	}
	return len(levels)
}

// oldLevels are what the numbers mean that NCCL_NET_GDR_LEVEL once was: 0 to 5 and more.
var oldLevels = []string{"LOC", "PIX", "PXB", "PHB", "SYS", "SYS"}

// userLevel is the limit that NCCL_NET_GDR_LEVEL sets, a name or an old number; what is neither sets none (ncclGetLevel, src/graph/paths.cc).
func (e Env) userLevel() (int, bool) {
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

// usesC2C says whether NCCL goes through the CPU that a GPU is coupled to: since 2.27, in 2.26 when told to.
func (j Job) usesC2C() bool {
	v := parseVersion(j.NCCL)
	switch {
	case v.before(version{2, 26}):
		return false
	case v.before(version{2, 27}):
		return j.Env.integer("NCCL_NET_GDR_C2C", 0) != 0
	}
	return j.Env.integer("NCCL_NET_GDR_C2C", 1) != 0
}

// limit is the distance up to which NCCL lets a NIC at a GPU, and whether the user has set it.
func (j Job) limit() (limit int, set bool) {
	if l, ok := j.Env.userLevel(); ok {
		return l, true
	}
	if j.usesC2C() {
		return Level(pci.P2C), false
	}
	return Level(pci.PXB), false
}

// hcas is NCCL_IB_HCA: [^][=]NAME[:PORT],… — names are prefixes unless there is a =, and left out where there is a ^ (parseStringList
// and matchIfList, src/misc/socket.cc and utils.cc).
type hcas struct {
	not, exact bool
	list       []string
}

func (e Env) hcas() (h hcas) {
	text := e["NCCL_IB_HCA"]
	text, h.not = strings.CutPrefix(text, "^")
	text, h.exact = strings.CutPrefix(text, "=")
	for item := range strings.SplitSeq(text, ",") {
		if item != "" {
			h.list = append(h.list, item)
		}
	}
	return h
}

// allow says whether NCCL may use a port of a device.
func (h hcas) allow(device string, port int) bool {
	if len(h.list) == 0 {
		return true
	}
	for _, item := range h.list {
		name, number, _ := strings.Cut(item, ":")
		same := name == device || !h.exact && strings.HasPrefix(device, name)
		if same && cmp.Or(number, strconv.Itoa(port)) == strconv.Itoa(port) {
			return !h.not
		}
	}
	return h.not
}
