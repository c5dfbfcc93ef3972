package nccl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/words"
)

// Rates are the bus bandwidths of the operation that moved most data in a communicator, as NCCL's Inspector plugin has
// recorded it on this host. All ranks wait for each other: one that enters an operation late has a higher figure than
// those that wait for it.
type Rates struct {
	Communicator string    `json:"communicator"` // its name, or hash
	Ranks        int       `json:"ranks"`
	Operation    string    `json:"operation"` // AllReduce, Send
	Bytes        uint64    `json:"bytes"`     // of a message
	Here         int       `json:"ranks_here"`
	Median       float64   `json:"median_gb_per_second"` // 10^9 bytes; of the medians of the ranks here
	Lowest       RankRate  `json:"lowest"`
	Highest      RankRate  `json:"highest"`
	Last         time.Time `json:"last"` // record
}

// RankRate is the median of a rank.
type RankRate struct {
	Rank int     `json:"rank"`
	Rate float64 `json:"gb_per_second"`
}

// Limits of dumps.
const (
	dumpWindow   = 10 * time.Minute // before the last record
	dumpsNamed   = 16               // communicators
	dumpNameSize = 128              // bytes of a name
)

// dumpName is the name of a file, HOSTNAME-pidPID.log (plugins/profiler/inspector/inspector.cc,
// inspectorStateDumpJSON).
var dumpName = lazy.Regexp(`^(.+)-pid([0-9]{1,10})\.log$`)

// PIDOfDump returns the process that writes a file, if it runs on one of the hosts: the directory
// (NCCL_INSPECTOR_DUMP_DIR) may be shared. 0 if it is not a dump of a process on these hosts.
func PIDOfDump(name string, hosts []string) int {
	m := dumpName().FindStringSubmatch(name)
	if m == nil || !slices.Contains(hosts, m[1]) {
		return 0
	}
	pid, _ := strconv.Atoi(m[2])
	return pid
}

// RatesOfDumps parses JSON dumps, by the PID of their process: a line for each operation. Lines that are no record are
// left out.
func RatesOfDumps(dumps map[int][]byte) []Rates {
	var all []finished
	for pid, text := range dumps {
		all = append(all, recordsOf(text, pid)...)
	}
	return ratesOf(all)
}

// record is a line of a file (inspector_json.cc, output format v4.0).
type record struct {
	Header struct {
		ID    string `json:"id"`
		Name  string `json:"comm_name"` // "unknown" without a name; absent in earlier versions
		Rank  int    `json:"rank"`
		Ranks int    `json:"n_ranks"`
	} `json:"header"`
	Metadata struct {
		PID  int   `json:"pid"`
		Time int64 `json:"dump_timestamp_us"`
	} `json:"metadata"`
	Collective struct {
		Name  string  `json:"coll"`
		Bytes uint64  `json:"coll_msg_size_bytes"`
		Rate  float64 `json:"coll_busbw_gbs"`
	} `json:"coll_perf"`
	PointToPoint struct {
		Name  string  `json:"p2p"`
		Bytes uint64  `json:"p2p_msg_size_bytes"`
		Rate  float64 `json:"p2p_busbw_gbs"`
	} `json:"p2p_perf"`
}

// finished is an operation that a rank has completed.
type finished struct {
	id, name    string // of the communicator
	rank, ranks int
	at          time.Time
	operation   string
	bytes       uint64
	rate        float64
}

// recordsOf parses lines. The last one may be incomplete; others than records of the process are left out.
func recordsOf(text []byte, pid int) (out []finished) {
	for line := range bytes.Lines(text) {
		var r record
		if json.Unmarshal(line, &r) != nil || r.Metadata.PID != pid || r.Header.ID == "" || r.Header.Rank < 0 ||
			r.Header.Rank >= r.Header.Ranks {
			continue
		}
		name := cmp.Or(r.Header.Name, r.Header.ID)
		if name == "unknown" {
			name = r.Header.ID
		}
		one := finished{
			r.Header.ID, plain(name), r.Header.Rank, r.Header.Ranks, time.UnixMicro(r.Metadata.Time).UTC(),
			plain(r.Collective.Name), r.Collective.Bytes, r.Collective.Rate,
		}
		if one.operation == "" {
			one.operation, one.bytes, one.rate = plain(r.PointToPoint.Name), r.PointToPoint.Bytes, r.PointToPoint.Rate
		}
		if one.operation != "" && one.rate > 0 {
			out = append(out, one)
		}
	}
	return out
}

// plain returns a text of a job on one line, cut at dumpNameSize.
func plain(text string) string {
	return words.Cut(words.Replace(text, func(r rune) bool { return !unicode.IsPrint(r) }, ' '), dumpNameSize)
}

// ratesOf returns the rates of each communicator, sorted by name.
func ratesOf(all []finished) (out []Rates) {
	byID := map[string][]finished{}
	for _, d := range all {
		byID[d.id] = append(byID[d.id], d)
	}
	for _, of := range byID {
		out = append(out, ratesIn(of))
	}
	slices.SortFunc(out, func(a, b Rates) int {
		return cmp.Or(-cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Communicator, b.Communicator),
			cmp.Compare(a.Operation, b.Operation))
	})
	return out[:min(len(out), dumpsNamed)]
}

// ratesIn returns the rates of a communicator with records.
func ratesIn(of []finished) Rates {
	type kind struct {
		operation string
		bytes     uint64
	}
	last := slices.MaxFunc(of, func(a, b finished) int { return a.at.Compare(b.at) }).at
	ranks, moved := map[kind]map[int][]float64{}, map[kind]float64{}
	for _, d := range of {
		if last.Sub(d.at) > dumpWindow {
			continue
		}
		k := kind{d.operation, d.bytes}
		if ranks[k] == nil {
			ranks[k] = map[int][]float64{}
		}
		ranks[k][d.rank] = append(ranks[k][d.rank], d.rate)
		moved[k] += float64(d.bytes)
	}
	kinds := slices.SortedFunc(maps.Keys(ranks), func(a, b kind) int {
		return cmp.Or(-cmp.Compare(moved[a], moved[b]), cmp.Compare(a.operation, b.operation), cmp.Compare(a.bytes, b.bytes))
	})
	most := kinds[0]
	var rates []RankRate
	for _, rank := range slices.Sorted(maps.Keys(ranks[most])) {
		rates = append(rates, RankRate{rank, median(ranks[most][rank])})
	}
	var medians []float64
	for _, r := range rates {
		medians = append(medians, r.Rate)
	}
	slower := func(a, b RankRate) int { return cmp.Compare(a.Rate, b.Rate) }
	return Rates{
		of[0].name, of[0].ranks, most.operation, most.bytes, len(rates), median(medians), slices.MinFunc(rates, slower),
		slices.MaxFunc(rates, slower), last,
	}
}

// median returns the lower median of at least one value.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
