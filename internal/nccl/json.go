package nccl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/lazy"
)

// dump is the answer in JSON: src/ras/client_support.cc, json… functions and rasDumpCommsToJSON, v2.28.7 to v2.30.7.
type dump struct {
	NCCL          string `json:"nccl_version"`
	CUDARuntime   int    `json:"cuda_runtime_version"`
	CUDADriver    int    `json:"cuda_driver_version"`
	Communicators []comm `json:"communicators"`
	RAS           *struct {
		Seconds  float64 `json:"collection_time_sec"`
		Timeouts int     `json:"timeouts_count"`
	} `json:"ras"`
}

type comm struct {
	Hash    string     `json:"hash"`
	Size    int        `json:"size"`
	Ranks   []commRank `json:"ranks"`
	Missing []commRank `json:"missing_ranks"`
}

type commRank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"` // an address, or unknown
	PID    int    `json:"pid"`  // -1: unknown
	CUDA   int    `json:"cuda_dev"`
	NVML   int    `json:"nvml_dev"`
	Status struct {
		Init         int  `json:"init_state"` // ncclResult_t
		Async        int  `json:"async_error"`
		Finalize     bool `json:"finalize_called"`
		Destroy      bool `json:"destroy_flag"`
		Abort        bool `json:"abort_flag"`
		Unresponsive bool `json:"unresponsive"` // of a missing rank, as the next
		Dead         bool `json:"considered_dead"`
	} `json:"status"`
	Counts map[string]uint64 `json:"collective_counts"` // by function
}

// missingComma: versions before 2.29 write no comma between these members of a missing rank (jsonWriteMissingRank,
// v2.28.7 to v2.28.9).
var missingComma = lazy.Regexp(`("nvml_dev": -?[0-9]+)(\n *"status")`)

var (
	versionForm = lazy.Regexp(`^\d{1,3}\.\d{1,3}(\.\d{1,3})?[\w.+-]{0,32}$`)
	hashForm    = lazy.Regexp(`^0x([0-9a-f]{1,16})$`)
	nameForm    = lazy.Regexp(`^\w{1,32}$`)
)

// parseJSON parses an answer in JSON. Errors: not JSON, cut off, or not NCCL's.
func parseJSON(b []byte) (*Answer, error) {
	var d dump
	if err := json.Unmarshal(missingComma().ReplaceAll(b, []byte("$1,$2")), &d); err != nil {
		return nil, fmt.Errorf("answer of %d bytes is incomplete or no JSON: %w", len(b), err)
	}
	if !versionForm().MatchString(d.NCCL) || d.RAS == nil {
		return nil, fmt.Errorf("answer of %d bytes is not NCCL's: no nccl_version or no ras", len(b))
	}
	a := &Answer{
		Format: JSON, NCCL: d.NCCL, CUDARuntime: d.CUDARuntime, CUDADriver: d.CUDADriver, Timeouts: d.RAS.Timeouts,
		Seconds:  d.RAS.Seconds,
		Problems: []Problem{}, Raw: string(b), listed: map[Process]bool{}, complete: true,
	}
	all := groups{}
	for i := range d.Communicators {
		if err := a.communicator(&d.Communicators[i], all); err != nil {
			return nil, err
		}
	}
	a.Communicators = all.sorted()
	a.finish()
	hosts := map[string]bool{}
	for p := range a.listed {
		hosts[p.Host] = true
	}
	a.Nodes, a.Processes, a.GPUs = len(hosts), len(a.listed), d.gpus()
	return a, nil
}

// gpus counts the GPUs of all ranks: on a host they differ in nvml_dev.
func (d *dump) gpus() int {
	type gpu struct {
		host string
		nvml int
	}
	found := map[gpu]bool{}
	for i := range d.Communicators {
		c := &d.Communicators[i]
		for _, ranks := range [][]commRank{c.Ranks, c.Missing} {
			for k := range ranks {
				if ranks[k].PID > 0 {
					found[gpu{ranks[k].Host, ranks[k].NVML}] = true
				}
			}
		}
	}
	return len(found)
}

// communicator adds a communicator: its group, and its problems by the rules of rasClientRunComms.
func (a *Answer) communicator(c *comm, all groups) error {
	hash := hashForm().FindStringSubmatch(c.Hash)
	if hash == nil || c.Size < len(c.Ranks)+len(c.Missing) {
		return fmt.Errorf("answer is not consistent: communicator %.20q of %d ranks lists %d",
			c.Hash, c.Size, len(c.Ranks)+len(c.Missing))
	}
	found := problems{a: a, hash: fmt.Sprintf("%016s", hash[1])}
	statuses, hosts := map[string][]Member{}, map[string]bool{}
	errors := map[string][]Member{}
	counts := map[string]map[uint64][]Member{}
	for i := range c.Ranks {
		r := &c.Ranks[i]
		m := a.member(r)
		if m.Host != "" {
			hosts[m.Host] = true
		}
		statuses[r.status()] = append(statuses[r.status()], m)
		for what, code := range map[string]int{"initialization": r.Status.Init, "asynchronous": r.Status.Async} {
			if code != resultSuccess && code != resultInProgress {
				text := what + " error: " + result(code)
				errors[text] = append(errors[text], m)
			}
		}
		for name, n := range r.Counts {
			if !nameForm().MatchString(name) {
				return fmt.Errorf("answer is not consistent: %.40q in collective_counts", name)
			}
			if counts[name] == nil {
				counts[name] = map[uint64][]Member{}
			}
			counts[name][n] = append(counts[name][n], m)
		}
	}
	var dead, silent []Member
	for i := range c.Missing {
		r := &c.Missing[i]
		switch m := a.member(r); {
		case r.Status.Dead:
			dead = append(dead, m)
		case r.Status.Unresponsive:
			silent = append(silent, m)
		default: // it has answered, without this communicator
			statuses[noComm] = append(statuses[noComm], m)
		}
	}
	found.add(Dead, "considered dead", dead)
	found.add(Incomplete, "no data received", silent)
	found.each(Failed, errors)
	if len(statuses) > 1 || len(statuses[noComm]) > 0 {
		found.each(Mismatch, prefixed("status ", statuses))
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if len(counts[name]) > 1 {
			byText := map[string][]Member{}
			for n, members := range counts[name] {
				byText[name+": "+launched(n)] = members
			}
			found.each(Mismatch, byText)
		}
	}
	all[groupKey{len(hosts), c.Size, lastStatus(statuses), strings.Join(found.kinds, ",")}]++
	return nil
}

func launched(n uint64) string {
	if n == 0 {
		return "no operation launched"
	}
	return "launched up to operation " + strconv.FormatUint(n, 10)
}

// member returns a rank, whose process is listed.
func (a *Answer) member(r *commRank) Member {
	m := Member{Rank: new(r.Rank), GPU: strconv.Itoa(r.CUDA), Process: Process{Host: host(r.Host), PID: max(r.PID, 0)}}
	if r.NVML != r.CUDA {
		m.GPU += " (NVML " + strconv.Itoa(r.NVML) + ")"
	}
	a.list(m.Process)
	return m
}

// Statuses of a communicator, in the order of rasACStatus. 2.24 and 2.25 have UNKNOWN for NOCOMM.
const noComm = "NOCOMM"

var statusOrder = []string{"UNKNOWN", noComm, "INIT", "RUNNING", "FINALIZE", "ABORT"}

func (r *commRank) status() string {
	switch {
	case r.Status.Abort:
		return "ABORT"
	case r.Status.Finalize || r.Status.Destroy:
		return "FINALIZE"
	case r.Status.Init == resultSuccess:
		return "RUNNING"
	}
	return "INIT"
}

// lastStatus returns the last status of the order that a rank has.
func lastStatus(statuses map[string][]Member) string {
	for _, s := range slices.Backward(statusOrder) {
		if len(statuses[s]) > 0 {
			return s
		}
	}
	return "UNKNOWN"
}

// Results, ncclResult_t of nccl.h.
const (
	resultSuccess    = 0
	resultInProgress = 7
)

// result returns the text of an error: ncclErrorToString, src/ras/client_support.cc; ncclTimeout since 2.30.
func result(code int) string {
	texts := map[int]string{
		1: "Unhandled CUDA error", 2: "System error", 3: "Internal error", 4: "Invalid argument", 5: "Invalid usage",
		6: "Remote process error", 8: "Timeout",
	}
	return cmp.Or(texts[code], "ncclResult_t "+strconv.Itoa(code))
}

// problems are those of one communicator.
type problems struct {
	a     *Answer
	hash  string
	kinds []string
}

func (p *problems) add(kind, what string, members []Member) {
	if len(members) == 0 {
		return
	}
	word := kind
	if kind == Dead { // a dead process is missing in its communicators
		word = Incomplete
	}
	if !slices.Contains(p.kinds, word) {
		p.kinds = append(p.kinds, word)
	}
	one := Problem{Kind: kind, Communicator: p.hash, What: what, Count: len(members), Members: []Member{}}
	one.add(members...)
	p.a.Problems = append(p.a.Problems, one)
}

// each adds a problem for each text, those with the most ranks first, then the higher operation, as NCCL orders them.
func (p *problems) each(kind string, byText map[string][]Member) {
	texts := slices.SortedFunc(maps.Keys(byText), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(byText[y]), len(byText[x])), cmp.Compare(len(y), len(x)), cmp.Compare(y, x))
	})
	for _, text := range texts {
		p.add(kind, text, byText[text])
	}
}

func prefixed(prefix string, by map[string][]Member) map[string][]Member {
	out := map[string][]Member{}
	for k, v := range by {
		out[prefix+k] = v
	}
	return out
}
