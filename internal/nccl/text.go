package nccl

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/lazy"
)

// Limits of a text. NCCL cuts lists in a line at 1023 bytes.
const (
	maxLine    = 1200
	maxUnknown = 1000 // lines
)

// Parts of a line. A GPU is "5", or "5 (NVML 1)"; the GPUs of a process are separated by commas.
const (
	gpuPart    = `(\d[\d,]*(?: \(NVML \d[\d,]*\))?)`
	memberPart = ` -- (?:GPU ` + gpuPart + ` managed by process (\d+) on node (\S+)|\[process information not found\])$`
)

// textLine is a form of line in the text format, trimmed.
type textLine struct {
	from, until string // first and last version with it; empty: 2.24.3, v2.30.7
	form        func() *regexp.Regexp
	take        func(*textParser, []string) // with the submatches
}

// textLines are the lines of src/ras/client_support.cc (rasClientRunInit, rasClientRunComms, rasClientBreakDownErrors)
// in v2.24.3, v2.25.1 (equal to it), v2.26.2, v2.28.7, v2.29.2 and v2.30.7. The protocol is 2 in all.
var textLines = []textLine{
	{form: lazy.Regexp(`^NCCL version (\S+) compiled with CUDA \S+$`), take: func(p *textParser, m []string) { p.a.NCCL = m[1] }},
	{form: lazy.Regexp(`^CUDA runtime version (-?\d+), driver version (-?\d+)$`), take: func(p *textParser, m []string) {
		p.a.CUDARuntime, p.a.CUDADriver = max(0, p.number(m[1])), max(0, p.number(m[2]))
	}},
	{form: lazy.Regexp(`^(?:Job summary|=+|Errors|Nodes +Processes.*|per node.*|Processes +GPUs|per process)$`)},
	// The numbers below follow "(total)"; other tables of the summary have the distribution over nodes.
	{form: lazy.Regexp(`^\(total\).*\(total\)$`), take: func(p *textParser, _ []string) { p.total = true }},
	{form: lazy.Regexp(`^\d+(?: +\d+){1,4}$`), take: (*textParser).summary},
	// Its PIDs are those of other nodes: the index is that of the first processes (rasClientRunInit, auxRasPeers[j]).
	{form: lazy.Regexp(`^(?:The outlier nodes?:|Node \S+ running process(?:es)? [\d,]+)$`)},
	{form: lazy.Regexp(`^Communicators\.\.\. \((\d+\.\d+)s\)$`), take: func(p *textParser, m []string) {
		p.a.Seconds, _ = strconv.ParseFloat(m[1], 64)
	}},
	{form: lazy.Regexp(`^(?:Group +Comms +Nodes.*|# +in group.*|No communicator data collected!)$`)},
	{
		form: lazy.Regexp(`^\d+ +(\d+) +(\d+) +\d+(?:-\d+)? +(\d+) +\d+ +(UNKNOWN|NOCOMM|INIT|RUNNING|FINALIZE|ABORT) +([A-Z,]{2,32})$`),
		take: (*textParser).group,
	},

	{form: lazy.Regexp(`^Warnings$`), take: func(p *textParser, _ []string) { p.warnings, p.section = true, "" }},
	{
		form: lazy.Regexp(`^(INCOMPLETE|DEAD|TIMEOUT)$`),
		take: func(p *textParser, m []string) { p.section, p.hash, p.topic = m[1], "", "" },
	},
	{form: lazy.Regexp(`^#\d+-\d+ \(([0-9a-f]{16})\) (INCOMPLETE|ERROR|MISMATCH)$`), take: func(p *textParser, m []string) {
		p.section, p.hash, p.topic = m[2], m[1], ""
	}},
	{
		form: lazy.Regexp(`^Encountered (\d+) communication timeouts? while gathering communicator data$`),
		take: func(p *textParser, m []string) {
			p.a.Timeouts = p.number(m[1])
		},
	},
	{form: lazy.Regexp(`^Missing communicator data from (\d+) (?:job process(?:es)?|ranks?)$`), take: func(p *textParser, m []string) {
		p.problem("no data received", m[1])
	}},
	{
		form: lazy.Regexp(`^(\d+) job process(?:es are| is) considered dead \(unreachable via the RAS network\)$`),
		take: func(p *textParser, m []string) {
			p.problem("considered dead", m[1])
		},
	},
	{form: lazy.Regexp(`^(Initialization|Asynchronous) errors? on (\d+) ranks?$`), take: func(p *textParser, m []string) {
		p.topic = strings.ToLower(m[1]) + " error: "
	}},
	{form: lazy.Regexp(`^Communicator ranks have different status$`), take: func(p *textParser, _ []string) { p.topic = "status " }},
	{
		until: "2.25", form: lazy.Regexp(`^Communicator ranks have different collective operation counts$`),
		take: func(p *textParser, _ []string) {
			p.topic = ""
		},
	},
	{
		from: "2.26", form: lazy.Regexp(`^Communicator ranks have different (\w{1,32}) operation counts$`),
		take: func(p *textParser, m []string) {
			p.topic = m[1] + ": "
		},
	},
	{
		form: lazy.Regexp(`^(\d+) ranks (?:reported ([A-Z][A-Za-z ]{3,40})|have status (\w{4,8}))$`),
		take: func(p *textParser, m []string) {
			p.problem(p.topic+m[2]+m[3], m[1])
		},
	},
	{
		form: lazy.Regexp(`^(\d+) ranks have (launched up to operation \d+|not launched any operations)$`),
		take: func(p *textParser, m []string) {
			p.problem(p.topic+operations(m[2]), m[1])
		},
	},
	{form: lazy.Regexp(`^Rank (\d+)` + memberPart), take: func(p *textParser, m []string) { p.member(m[1], m[2:]) }},
	{
		form: lazy.Regexp(`^Rank (\d+) (?:reported ([A-Z][A-Za-z ]{3,40})|has status (\w{4,8}))` + memberPart),
		take: func(p *textParser, m []string) {
			p.problem(p.topic+m[2]+m[3], "1")
			p.member(m[1], m[4:])
		},
	},
	{
		form: lazy.Regexp(`^Rank (\d+) has (launched up to operation \d+|not launched any operations)` + memberPart),
		take: func(p *textParser, m []string) {
			p.problem(p.topic+operations(m[2]), "1")
			p.member(m[1], m[3:])
		},
	},
	{until: "2.25", form: lazy.Regexp(`^Rank (\d+) has status (\w{4,8})$`), take: func(p *textParser, m []string) {
		p.problem(p.topic+m[2], "1")
		p.member(m[1], nil)
	}},
	{until: "2.25", form: lazy.Regexp(`^The (?:missing ranks?|unknown ranks): ([\d,]+)$`), take: func(p *textParser, m []string) {
		for rank := range strings.SplitSeq(m[1], ",") {
			p.member(rank, nil)
		}
	}},
	{form: lazy.Regexp(`^Process (\d+) on node (\S+) managing GPUs? ` + gpuPart + `$`), take: func(p *textParser, m []string) {
		p.member("", []string{m[3], m[1], m[2]})
	}},
	{form: lazy.Regexp(`^\[could not find information on \d+ process(?:es)?\]$`)},
}

func operations(text string) string {
	if strings.HasPrefix(text, "not") {
		return launched(0)
	}
	return text
}

// textParser has the state between the lines of an answer.
type textParser struct {
	a             *Answer
	total         bool   // the next numbers are the totals of the job
	warnings      bool   // the last part of the answer has begun
	section, hash string // kind of the present problems, communicator
	topic         string // begins What of the present problems
	failed        error  // a number that does not fit
}

// parseText parses an answer in the text format. Errors: cut off, or not NCCL's. Lines of an unknown form are counted.
func parseText(b []byte) (*Answer, error) {
	p := &textParser{
		a: &Answer{Format: Text, Communicators: []Group{}, Problems: []Problem{}, Raw: string(b), listed: map[Process]bool{}},
	}
	for line := range strings.Lines(p.a.Raw) {
		if line = strings.TrimSpace(line); line != "" && (len(line) > maxLine || !p.line(line)) {
			p.a.NotUnderstood++
		}
		if p.failed != nil {
			return nil, fmt.Errorf("answer is not consistent: %.80q: %w", line, p.failed)
		}
		if p.a.NotUnderstood > maxUnknown || p.a.NotUnderstood > 0 && p.a.NCCL == "" {
			break
		}
	}
	switch {
	case !versionForm().MatchString(p.a.NCCL):
		return nil, fmt.Errorf("answer of %d bytes is not NCCL's: no NCCL version", len(b))
	case p.a.NotUnderstood > maxUnknown:
		return nil, fmt.Errorf("answer of %d bytes of NCCL %s is not understood", len(b), p.a.NCCL)
	case !p.warnings: // the heading of the last part; it is sent in one piece
		return nil, fmt.Errorf("answer of %d bytes is incomplete: the connection was closed before its last part", len(b))
	}
	p.a.finish()
	return p.a, nil
}

// line reports whether it has a known form.
func (p *textParser) line(line string) bool {
	for _, l := range textLines {
		if m := l.form().FindStringSubmatch(line); m != nil {
			if l.take != nil {
				l.take(p, m)
			}
			return true
		}
	}
	return false
}

func (p *textParser) number(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		p.failed = err
	}
	return int(n)
}

// summary takes the totals of the job: nodes first, processes and GPUs last.
func (p *textParser) summary(m []string) {
	n := strings.Fields(m[0])
	if !p.total || len(n) < 3 {
		return
	}
	p.total = false
	p.a.Nodes, p.a.Processes, p.a.GPUs = p.number(n[0]), p.number(n[len(n)-2]), p.number(n[len(n)-1])
}

func (p *textParser) group(m []string) {
	p.a.Communicators = append(p.a.Communicators, Group{
		Communicators: p.number(m[1]), Nodes: p.number(m[2]), Ranks: p.number(m[3]), Status: m[4], Errors: splitKinds(m[5]),
	})
}

func (p *textParser) problem(what, count string) {
	if !slices.Contains(severity, p.section) {
		p.failed = errors.New("no heading above it")
		return
	}
	one := Problem{Kind: p.section, Communicator: p.hash, What: what, Count: p.number(count), Members: []Member{}}
	p.a.Problems = append(p.a.Problems, one)
}

// member adds a rank, or a process, to the problem above it. of: GPU, PID, node, all of them empty if not found.
func (p *textParser) member(rank string, of []string) {
	if len(p.a.Problems) == 0 {
		p.failed = errors.New("no problem above it")
		return
	}
	var m Member
	if rank != "" {
		m.Rank = new(p.number(rank))
	}
	if len(of) == 3 && of[1] != "" {
		m.GPU, m.PID, m.Host = of[0], p.number(of[1]), host(of[2])
		p.a.list(m.Process)
	}
	p.a.Problems[len(p.a.Problems)-1].add(m)
}
