package nccl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// server answers each connection on a local port. n counts them from 0. It returns its address, and the lines that it
// has received.
func server(t *testing.T, handle func(n int, s *peer)) (address string, received func() []string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lines []string
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				handle(n, &peer{Conn: c, lines: bufio.NewScanner(c), done: done, heard: func(line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}})
			})
		}
	})
	t.Cleanup(func() {
		close(done)
		l.Close()
		all.Wait()
	})
	return l.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

// peer is the service's end of a connection.
type peer struct {
	net.Conn
	lines *bufio.Scanner
	heard func(string)
	done  chan struct{} // closed at the end of the test
}

func (p *peer) say(text string) { _, _ = p.Write([]byte(text)) }

// serve is the service of a version: rasClientEventLoop, src/ras/client_support.cc. Answers are by format; without one
// for JSON it has no SET FORMAT, as before v2.28.7.
func (p *peer) serve(texts map[string]string) {
	format := Text
	for p.lines.Scan() {
		line := p.lines.Text()
		p.heard(line)
		switch {
		case strings.HasPrefix(line, "CLIENT PROTOCOL "):
			p.say("SERVER PROTOCOL 2\n")
		case strings.HasPrefix(line, "TIMEOUT "):
			p.say("OK\n")
		case line == "SET FORMAT json" && texts[JSON] != "":
			format = JSON
			p.say("OK\n")
		case line == "STATUS", line == "VERBOSE STATUS":
			p.say(texts[format])
			return
		default:
			p.say("ERROR: Unknown command " + line + "\n")
		}
	}
}

func TestQuery(t *testing.T) {
	hello := []string{"CLIENT PROTOCOL 2", "TIMEOUT 5", "SET FORMAT json"}
	for name, c := range map[string]struct {
		answers map[string]string
		want    string
		last    string
	}{
		"2.24.3": {map[string]string{Text: "v2.24.3-dead.txt"}, "v2.24.3-dead.txt", "VERBOSE STATUS"},
		"2.26.2": {map[string]string{Text: "v2.26.2-error.txt"}, "v2.26.2-error.txt", "VERBOSE STATUS"},
		"2.28.7": {map[string]string{Text: "v2.26.2-ok.txt", JSON: "v2.28.7-hang.json"}, "v2.28.7-hang.json", "STATUS"},
		"2.30.7": {map[string]string{Text: "v2.26.2-ok.txt", JSON: "v2.30.7-ok.json"}, "v2.30.7-ok.json", "STATUS"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := map[string]string{}
			for format, file := range c.answers {
				texts[format] = string(answer(t, file))
			}
			at, received := server(t, func(_ int, p *peer) { p.serve(texts) })
			a, err := Query(t.Context(), at, Local{})
			if err != nil {
				t.Fatal(err)
			}
			if got := summaryOf(a); got != answers[c.want] {
				t.Errorf("got:\n%s\nwant:\n%s", got, answers[c.want])
			}
			if got, want := received(), append(slices.Clone(hello), c.last); !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

// small are limits that a test can wait for.
var small = limits{total: 20 * time.Second, silent: time.Second, tries: 3, line: 64, answer: 32 << 10}

func TestQueryFails(t *testing.T) {
	ok := map[string]string{Text: string(answer(t, "v2.26.2-ok.txt"))}
	respond := func(lines ...string) func(int, *peer) {
		return func(_ int, p *peer) {
			for _, line := range lines {
				if !p.lines.Scan() {
					return
				}
				p.say(line)
			}
		}
	}
	agreed := []string{"SERVER PROTOCOL 2\n", "OK\n", "ERROR: Unknown command SET FORMAT json\n", "NCCL version "}
	short := small
	short.total = time.Second
	for name, c := range map[string]struct {
		limits limits
		handle func(int, *peer)
		want   string
	}{
		"silent":              {small, func(_ int, p *peer) { <-p.done }, "no response within 1s"},
		"closes":              {small, func(int, *peer) {}, "127.0.0.1:"},
		"closes after a line": {small, respond("SERVER PROTOCOL 2\n"), "127.0.0.1:"},
		"another service":     {small, respond("220 mail.example.com ESMTP\r\n"), `not NCCL's RAS service: it responds "220 mail`},
		"a later protocol":    {small, respond("SERVER PROTOCOL 3\n"), "protocol 3 of a later NCCL is not supported"},
		"a long line":         {small, respond(strings.Repeat("x", 100000)), "response to CLIENT PROTOCOL 2 is longer than 64 bytes"},
		"rejects the timeout": {small, respond("SERVER PROTOCOL 2\n", "ERROR: Invalid timeout value 5\n"), "TIMEOUT rejected"},
		"rejects the format":  {small, respond("SERVER PROTOCOL 2\n", "OK\n", "ERROR: Invalid format json\n"), "SET FORMAT rejected"},
		"hostile":             {small, respond("\x1b]0;owned\a\x00\n"), `it responds "\x1b]0;owned\a\x00"`},
		"half an answer":      {small, func(_ int, p *peer) { p.serve(map[string]string{Text: ok[Text][:300]}) }, "is incomplete: the connection was closed"},
		"half of JSON":        {small, func(_ int, p *peer) { p.serve(map[string]string{JSON: `{"nccl_version": "2.30.7",`}) }, "incomplete or no JSON"},
		"garbage":             {small, func(_ int, p *peer) { p.serve(map[string]string{Text: strings.Repeat("\xff\x00", 9999)}) }, "is not NCCL's"},
		"never ends":          {small, func(_ int, p *peer) { p.serve(map[string]string{Text: strings.Repeat("=\n", 1<<20)}) }, "answer too large: more than 32768 bytes"},
		"stops in the answer": {short, func(n int, p *peer) {
			respond(agreed...)(n, p)
			<-p.done
		}, "no complete answer within 1s: answer is incomplete after 13 bytes"},
		"sends a byte at a time": {short, func(n int, p *peer) {
			respond(agreed...)(n, p)
			for tick := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-p.done:
					return
				case <-tick.C:
					p.say("=")
				}
			}
		}, "no complete answer within 1s: answer is incomplete after "},
		"another job's, each time": {small, func(_ int, p *peer) { p.serve(map[string]string{JSON: string(answer(t, "v2.30.7-hang.json"))}) }, "the answer is that of another job"},
	} {
		t.Run(name, func(t *testing.T) {
			at, _ := server(t, c.handle)
			began := time.Now()
			a, err := c.limits.query(t.Context(), at, Local{PIDs: []int{77}})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), at) {
				t.Errorf("%+v, %v, want %s", a, err, c.want)
			}
			if took := time.Since(began); took > c.limits.total+time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// Every process of a job listens on the port. The next connection may reach another one.
func TestQueryTriesAgain(t *testing.T) {
	mine, other := string(answer(t, "v2.30.7-hang.json")), string(answer(t, "v2.30.7-ok.json"))
	for name, c := range map[string]struct {
		first func(p *peer)
		want  string
	}{
		"after a silent process": {func(p *peer) { <-p.done }, JSON},
		"after another job's":    {func(p *peer) { p.serve(map[string]string{JSON: other}) }, JSON},
		"in text after too much JSON": {func(p *peer) {
			p.serve(map[string]string{JSON: strings.Repeat(" ", small.answer+1)})
		}, Text},
	} {
		t.Run(name, func(t *testing.T) {
			at, received := server(t, func(n int, p *peer) {
				if n == 0 {
					c.first(p)
					return
				}
				p.serve(map[string]string{JSON: mine, Text: string(answer(t, "v2.24.3-dead.txt"))})
			})
			a, err := small.query(t.Context(), at, Local{PIDs: []int{4002, 41007}})
			if err != nil {
				t.Fatal(err)
			}
			if a.Format != c.want || len(a.Local) != 1 {
				t.Errorf("%s, local %v; sent %q", a.Format, a.Local, received())
			}
		})
	}
}

func TestQueryWithoutService(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	if a, err := Query(t.Context(), at, Local{}); !errors.Is(err, ErrNone) ||
		!strings.Contains(fmt.Sprint(err), "refused") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestQueryIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	at, _ := server(t, func(_ int, p *peer) {
		p.lines.Scan()
		cancel()
		<-p.done
	})
	if a, err := Query(ctx, at, Local{}); err == nil {
		t.Errorf("%+v", a)
	}
}

func TestHasRAS(t *testing.T) {
	for version, want := range map[string]bool{
		"2.23.4": false, "2.24.3": true, "2.30.7": true, "2.3.5": false, "3.0": true, "1.9": false, "": true, "unknown": true,
	} {
		if got := HasRAS(version); got != want {
			t.Errorf("%s: %t", version, got)
		}
	}
}
