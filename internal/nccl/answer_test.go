package nccl

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"unicode"
)

// The answers in testdata are written from the format strings of src/ras/client_support.cc at the tag in their name:
// rasClientRunInit, rasClientRunComms and rasClientBreakDownErrors (text), json… (JSON, since v2.28.7). v2.28.7 lacks a
// comma in missing_ranks. Those named recorded are of NCCL 2.28.9 and a job of two GPUs: ok; hang, in which rank 1 does
// not call AllReduce; stopped, rank 1 by SIGSTOP.
func answer(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseAnswer(name string, b []byte) (*Answer, error) {
	if strings.HasSuffix(name, ".json") {
		return parseJSON(b)
	}
	return parseText(b)
}

// summaryOf returns an answer in a few lines.
func summaryOf(a *Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s cuda %d/%d: %d nodes, %d processes, %d GPUs; %d timeouts, %.3fs, %d lines\n", a.Format, a.NCCL,
		a.CUDARuntime, a.CUDADriver, a.Nodes, a.Processes, a.GPUs, a.Timeouts, a.Seconds, a.NotUnderstood)
	for _, g := range a.Communicators {
		fmt.Fprintf(&b, "%d× %d nodes %d ranks %s %v\n", g.Communicators, g.Nodes, g.Ranks, g.Status, g.Errors)
	}
	for _, p := range a.Problems {
		fmt.Fprintf(&b, "%s %s %s: %d", p.Kind, p.Communicator, p.What, p.Count)
		for _, m := range p.Members {
			rank := "-"
			if m.Rank != nil {
				rank = fmt.Sprint(*m.Rank)
			}
			fmt.Fprintf(&b, " | %s gpu %s pid %d on %s", rank, m.GPU, m.PID, m.Host)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const hang = ` cuda %[1]d/%[1]d: 2 nodes, 5 processes, 5 GPUs; 2 timeouts, 10.002s, 0 lines
1× 2 nodes 5 ranks RUNNING [INCOMPLETE MISMATCH]
1× 1 nodes 2 ranks ABORT [ERROR MISMATCH]
2× 1 nodes 1 ranks RUNNING []
DEAD 000000000000001f considered dead: 1 | 4 gpu 0 (NVML 2) pid 4003 on 10.0.0.12
ERROR 000000000000002f asynchronous error: Remote process error: 1 | 0 gpu 0 pid 4001 on 10.0.0.11
INCOMPLETE 000000000000001f no data received: 1 | 3 gpu 0 (NVML 1) pid 4002 on 10.0.0.12
MISMATCH 000000000000001f AllReduce: launched up to operation 900: 2 | 0 gpu 0 pid 4001 on 10.0.0.11 | 1 gpu 0 (NVML 1) pid 4002 on 10.0.0.11
MISMATCH 000000000000001f AllReduce: launched up to operation 899: 1 | 2 gpu 0 pid 4001 on 10.0.0.12
MISMATCH 000000000000002f status NOCOMM: 1 | 1 gpu 0 (NVML 1) pid 4002 on 10.0.0.11
MISMATCH 000000000000002f status ABORT: 1 | 0 gpu 0 pid 4001 on 10.0.0.11
`

// recorded is the answer in both formats: what is derived from JSON is what NCCL itself says in text.
const recorded = ` 2.28.9 cuda 13000/13000: 1 nodes, 2 processes, 2 GPUs; 0 timeouts, 0.000s, 0 lines
1× 1 nodes 2 ranks RUNNING [MISMATCH]
MISMATCH a4c2badbad8ed2e6 AllReduce: launched up to operation 67: 1 | 0 gpu 0 pid 622 on 192.0.2.2
MISMATCH a4c2badbad8ed2e6 AllReduce: launched up to operation 66: 1 | 1 gpu 1 pid 623 on 192.0.2.2
`

var answers = map[string]string{
	"v2.24.3-dead.txt": `text 2.24.3 cuda 12060/12060: 2 nodes, 16 processes, 16 GPUs; 2 timeouts, 5.010s, 0 lines
1× 2 nodes 16 ranks RUNNING [INCOMPLETE MISMATCH]
8× 2 nodes 2 ranks RUNNING []
DEAD  considered dead: 1 | - gpu 7 pid 41008 on 10.0.0.12
INCOMPLETE  no data received: 1 | - gpu 6 pid 41007 on 10.0.0.12
INCOMPLETE 5c1e77aa0b9d2f14 no data received: 2 | 14 gpu  pid 0 on  | 15 gpu  pid 0 on 
MISMATCH 5c1e77aa0b9d2f14 launched up to operation 4711: 13
MISMATCH 5c1e77aa0b9d2f14 launched up to operation 4710: 1 | 3 gpu 3 pid 30004 on 10.0.0.11
`,
	"v2.24.3-teardown.txt": `text 2.24.3 cuda 12060/12060: 2 nodes, 15 processes, 15 GPUs; 0 timeouts, 0.010s, 0 lines
1× 2 nodes 15 ranks FINALIZE [MISMATCH]
1× 1 nodes 3 ranks INIT [MISMATCH]
MISMATCH 9f00000000000001 status RUNNING: 11
MISMATCH 9f00000000000001 status UNKNOWN: 3 | 4 gpu  pid 0 on  | 5 gpu  pid 0 on  | 6 gpu  pid 0 on 
MISMATCH 9f00000000000001 status FINALIZE: 1 | 7 gpu 7 pid 30008 on 10.0.0.11
MISMATCH 9f00000000000002 status INIT: 2
MISMATCH 9f00000000000002 status UNKNOWN: 1 | 2 gpu  pid 0 on 
`,
	"v2.26.2-ok.txt": `text 2.26.2+cuda12.8 cuda 12080/12080: 2 nodes, 16 processes, 16 GPUs; 0 timeouts, 0.000s, 0 lines
1× 2 nodes 16 ranks RUNNING []
`,
	"v2.26.2-error.txt": `text 2.26.2+cuda12.8 cuda 12080/12080: 2 nodes, 4 processes, 14 GPUs; 0 timeouts, 0.000s, 0 lines
1× 2 nodes 14 ranks ABORT [ERROR MISMATCH]
ERROR 00000000deadbeef initialization error: System error: 1 | 2 gpu  pid 0 on 
ERROR 00000000deadbeef asynchronous error: Remote process error: 2 | 4 gpu 0 (NVML 4) pid 602 on fe80::1a2b:3cff:fe4d:5e6f | 5 gpu 1 (NVML 5) pid 602 on fe80::1a2b:3cff:fe4d:5e6f
ERROR 00000000deadbeef asynchronous error: Unhandled CUDA error: 1 | 9 gpu 1 pid 711 on 10.0.0.12
MISMATCH 00000000deadbeef status RUNNING: 12
MISMATCH 00000000deadbeef status NOCOMM: 1 | 13 gpu 1 pid 712 on 10.0.0.12
MISMATCH 00000000deadbeef status ABORT: 1 | 9 gpu 1 pid 711 on 10.0.0.12
MISMATCH 00000000deadbeef Broadcast: launched up to operation 3: 12
MISMATCH 00000000deadbeef Broadcast: no operation launched: 1 | 2 gpu  pid 0 on 
MISMATCH 00000000deadbeef AllReduce: launched up to operation 90210: 10
MISMATCH 00000000deadbeef AllReduce: no operation launched: 3 | 0 gpu 0 pid 601 on 10.0.0.11 | 1 gpu 1 pid 601 on 10.0.0.11 | 2 gpu  pid 0 on 
`,
	"v2.28.7-hang.json": "json 2.28.7+cuda12.9" + fmt.Sprintf(hang, 12090),
	"v2.30.7-hang.json": "json 2.30.7+cuda13.0" + fmt.Sprintf(hang, 13000),
	"v2.28.9-recorded-ok.json": `json 2.28.9 cuda 13000/13000: 1 nodes, 2 processes, 2 GPUs; 0 timeouts, 0.000s, 0 lines
1× 1 nodes 2 ranks RUNNING []
`,
	"v2.28.9-recorded-ok.txt": `text 2.28.9 cuda 13000/13000: 1 nodes, 2 processes, 2 GPUs; 0 timeouts, 0.000s, 0 lines
1× 1 nodes 2 ranks RUNNING []
`,
	"v2.28.9-recorded-hang.json": "json" + recorded,
	"v2.28.9-recorded-hang.txt":  "text" + recorded,
	"v2.28.9-recorded-stopped.json": `json 2.28.9 cuda 13000/13000: 1 nodes, 2 processes, 2 GPUs; 0 timeouts, 0.000s, 0 lines
1× 1 nodes 2 ranks RUNNING [INCOMPLETE]
INCOMPLETE a4c2badbad8ed2e6 no data received: 1 | 1 gpu 1 pid 623 on 192.0.2.2
`,
	"v2.30.7-ok.json": `json 2.30.7+cuda13.0 cuda 13000/13000: 1 nodes, 1 processes, 1 GPUs; 0 timeouts, 0.001s, 0 lines
1× 1 nodes 2 ranks RUNNING []
`,
}

func TestAnswers(t *testing.T) {
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			a, err := parseAnswer(name, answer(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := summaryOf(a); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if a.Raw != string(answer(t, name)) {
				t.Error("raw text differs")
			}
		})
	}
}

// Each form of a line has an answer with it.
func TestTextLinesAreTested(t *testing.T) {
	var all []string
	for name := range answers {
		if strings.HasSuffix(name, ".txt") {
			for line := range strings.Lines(string(answer(t, name))) {
				all = append(all, strings.TrimSpace(line))
			}
		}
	}
	all = append(all, "[could not find information on 2 processes]") // a race in NCCL
	for _, l := range textLines {
		found := false
		for _, line := range all {
			found = found || l.form().MatchString(line)
		}
		if !found {
			t.Errorf("no answer has %s", l.form())
		}
	}
}

// An answer that ends early is an error at each byte, not a healthy job.
func TestHalfAnswers(t *testing.T) {
	for name := range answers {
		whole := answer(t, name)
		end := len(whole) - 3 // of JSON: without the last brace
		if strings.HasSuffix(name, ".txt") {
			end = strings.Index(string(whole), "Warnings")
		}
		for n := range end {
			if a, err := parseAnswer(name, whole[:n]); err == nil {
				t.Fatalf("%s: %d bytes are an answer:\n%s", name, n, summaryOf(a))
			}
		}
	}
}

func TestGarbage(t *testing.T) {
	ok := string(answer(t, "v2.26.2-ok.txt"))
	js := string(answer(t, "v2.30.7-hang.json"))
	for name, c := range map[string]struct{ format, answer, want string }{
		"empty text":            {Text, "", "is not NCCL's"},
		"empty JSON":            {JSON, "", "incomplete or no JSON"},
		"other service":         {Text, strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 9), "is not NCCL's"},
		"other JSON":            {JSON, `{"status":"OK"}`, "is not NCCL's"},
		"JSON of another type":  {JSON, `[1]`, "incomplete or no JSON"},
		"text as JSON":          {JSON, ok, "incomplete or no JSON"},
		"two documents":         {JSON, js + js, "incomplete or no JSON"},
		"a wrong hash":          {JSON, strings.Replace(js, `"0x1f"`, `"\u001b[31m"`, 1), "not consistent: communicator"},
		"too many ranks":        {JSON, strings.Replace(js, `"size": 5`, `"size": 4`, 1), "not consistent: communicator"},
		"a wrong function":      {JSON, strings.Replace(js, `"AllReduce"`, `"All\nReduce"`, 1), "not consistent:"},
		"a wrong version":       {JSON, strings.Replace(js, `"2.30.7+cuda13.0"`, `"2.30\u0007"`, 1), "is not NCCL's"},
		"a large number":        {Text, strings.Replace(ok, "        16       16\n", "        16       99999999999\n", 1), "not consistent"},
		"a rank without report": {Text, ok + "  Rank 1 -- [process information not found]\n", "no problem above it"},
		"a report without head": {Text, ok + "  3 ranks have status INIT\n", "no heading above it"},
		"text of another kind":  {Text, ok + strings.Repeat("lorem ipsum\n", 5000), "is not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := parseAnswer("."+strings.Replace(c.format, Text, "txt", 1), []byte(c.answer))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v, want %s", a, err, c.want)
			}
		})
	}
}

// Lines of a later version are counted.
func TestLinesNotUnderstood(t *testing.T) {
	text := strings.Replace(string(answer(t, "v2.26.2-ok.txt")), "Warnings\n",
		"Rank 5 is on fire\n"+strings.Repeat("x", 5000)+"\nWarnings\n", 1)
	a, err := parseText([]byte(text))
	if err != nil || a.NotUnderstood != 2 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestBounds(t *testing.T) {
	var b strings.Builder
	head, tail, _ := strings.Cut(string(answer(t, "v2.26.2-ok.txt")), "    0 ")
	b.WriteString(head)
	for range maxGroups + 10 {
		b.WriteString("    0         1         2         8        16        16   RUNNING      OK\n")
	}
	b.WriteString("    0 " + tail)
	for range maxProblems + 5 {
		b.WriteString("#0-0 (00000000deadbeef) MISMATCH\n  Communicator ranks have different status\n  100 ranks have status INIT\n")
		for range maxMembers + 1 {
			b.WriteString("  Rank 7 -- GPU 7 managed by process 5 on node 10.0.0.1\n")
		}
	}
	b.WriteString("DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n")
	a, err := parseText([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Problems) != maxProblems || len(a.Communicators) != maxGroups || a.LeftOut != 17 ||
		len(a.Problems[1].Members) != maxMembers {
		t.Errorf("%d problems, %d groups, %d left out", len(a.Problems), len(a.Communicators), a.LeftOut)
	}
	if a.Problems[0].Kind != Dead {
		t.Errorf("the worst is %s", a.Problems[0].Kind)
	}
}

func TestWhoseAnswer(t *testing.T) {
	here := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.12")}
	for name, c := range map[string]struct {
		answer  string
		job     Local
		local   string
		foreign string // part of the error
	}{
		"the job's":                       {"v2.30.7-hang.json", Local{[]int{4002, 4009}, here}, "[4002]", ""},
		"the job's, addresses unknown":    {"v2.30.7-hang.json", Local{[]int{4001}, nil}, "[4001]", ""},
		"processes unknown":               {"v2.30.7-hang.json", Local{nil, here}, "[]", ""},
		"another job's":                   {"v2.30.7-hang.json", Local{[]int{77, 78}, here}, "[]", "this host are 4001, 4002, 4003, this job's are 77, 78"},
		"a PID on another host":           {"v2.30.7-hang.json", Local{[]int{4001}, here[:1]}, "[]", "this host are none"},
		"text, the job's":                 {"v2.24.3-dead.txt", Local{[]int{41008}, here}, "[41008]", ""},
		"text, another job's":             {"v2.24.3-dead.txt", Local{[]int{77}, here}, "[]", "this host are 41007, 41008"},
		"text, no process of this host":   {"v2.24.3-dead.txt", Local{[]int{77}, here[:1]}, "[]", ""},
		"text of a healthy job":           {"v2.26.2-ok.txt", Local{[]int{77}, here}, "[]", ""},
		"a link-local address with scope": {"v2.26.2-error.txt", Local{[]int{602}, []netip.Addr{netip.MustParseAddr("fe80::1a2b:3cff:fe4d:5e6f")}}, "[602]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := parseAnswer(c.answer, answer(t, c.answer))
			if err != nil {
				t.Fatal(err)
			}
			err = a.check(c.job)
			if fmt.Sprint(a.Local) != c.local {
				t.Errorf("local: %v, want %s", a.Local, c.local)
			}
			if c.foreign == "" && err != nil ||
				c.foreign != "" && (!errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), c.foreign)) {
				t.Errorf("%v, want %q", err, c.foreign)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for name := range answers {
		f.Add(answer(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parser := range []func([]byte) (*Answer, error){parseJSON, parseText} {
			a, err := parser(b)
			if err != nil {
				if a != nil {
					t.Fatalf("%+v beside %v", a, err)
				}
				continue
			}
			if len(a.Problems) > maxProblems || len(a.Communicators) > maxGroups || a.NCCL == "" {
				t.Fatalf("%+v", a)
			}
			if text := strings.ReplaceAll(summaryOf(a), "\n", ""); strings.ContainsFunc(text, func(r rune) bool {
				return !unicode.IsGraphic(r)
			}) {
				t.Fatalf("%q", text)
			}
			_ = a.check(Local{PIDs: []int{1, 4001}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.11")}})
		}
	})
}
