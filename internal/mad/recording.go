package mad

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/mad/perf"
)

// A recording has a file for each node and way to it, "mad/direct/0-1-18" or "mad/lid/5", with a line for each request:
// the attribute and its number (AttributeModifier, or the port of performance management), then the data of the answer
// in hex without trailing zeros, or a status that is not success, or that there was no answer.

const (
	recordingFolder = "mad/"
	noAnswer        = "no answer"
	statusText      = "status "
)

// attributeNames are the attributes of subnet management and of performance management.
var attributeNames = map[bool]map[uint16]string{
	false: {
		attrNodeDescription: "NodeDescription", attrNodeInfo: "NodeInfo", attrSwitchInfo: "SwitchInfo",
		attrPortInfo: "PortInfo", attrSLToVL: "SLtoVLMappingTable", attrSMInfo: "SMInfo",
		attrPortInfoExtended: "PortInfoExtended", attrMellanoxPort: "MellanoxExtendedPortInfo",
	},
	true: {
		perf.AttrClassPortInfo: "ClassPortInfo", perf.AttrPortCounters: "PortCounters",
		perf.AttrPortCountersExtended: "PortCountersExtended", perf.AttrPortSamplesControl: "PortSamplesControl",
		attrPortExtendedSpeedsCounters: "PortExtendedSpeedsCounters", perf.AttrReceiveErrorDetails: "PortRcvErrorDetails",
	},
}

// question is a request as a recording has it: the file of its answer, and the name of the line.
type question struct{ file, line string }

// questionOf returns the question of a request.
func questionOf(d *Datagram) question {
	m := &d.MAD
	ofPerformance := d.Class() == ClassPerformance
	attribute := binary.BigEndian.Uint16(m[atAttribute:])
	name := cmp.Or(attributeNames[ofPerformance][attribute], fmt.Sprintf("%#04x", attribute))
	number := binary.BigEndian.Uint32(m[atModifier:])
	if ofPerformance {
		number = uint32(m[atData+1])
	}
	out := question{recordingFolder + "lid/" + strconv.Itoa(int(d.LID)), fmt.Sprintf("%s %d", name, number)}
	if d.Class() == ClassSubnetDirected {
		out.file = recordingFolder + "direct/0"
		for _, port := range m[atPath+1:][:m[atHops]] {
			out.file += "-" + strconv.Itoa(int(port))
		}
	}
	return out
}

// payload returns the part of a datagram that has the attribute.
func payload(m *[Size]byte) []byte {
	if m[atClass] == ClassPerformance {
		return m[atData:]
	}
	return m[atData:atPath]
}

// answerText returns an answer as a recording has it.
func answerText(d *Datagram) string {
	status := binary.BigEndian.Uint16(d.MAD[atStatus:])
	if d.Class() == ClassSubnetDirected {
		status &= directedStatus
	}
	if status != 0 {
		return fmt.Sprintf("%s%#04x", statusText, status)
	}
	all := payload(&d.MAD)
	return hex.EncodeToString(all[:max(1, len(bytes.TrimRight(all, "\x00")))])
}

// answered writes a recorded answer to a request; ErrTimeout where none came.
func answered(asked *Datagram, text string) (*Datagram, error) {
	if text == noAnswer {
		return nil, ErrTimeout
	}
	d := *asked
	m := &d.MAD
	m[atMethod] = methodAnswer
	clear(payload(m))
	if hexadecimal, ok := strings.CutPrefix(text, statusText); ok {
		status, err := strconv.ParseUint(hexadecimal, 0, 16)
		binary.BigEndian.PutUint16(m[atStatus:], uint16(status))
		return &d, err
	}
	b, err := hex.DecodeString(text)
	if err == nil && copy(payload(m), b) < len(b) {
		err = errors.New("longer than the attribute")
	}
	return &d, err
}

// Recorder is a transport that keeps the answers which pass through it.
type Recorder struct {
	Transport

	mu      sync.Mutex
	asked   map[uint32]question // by transaction
	answers map[question]string
}

// NewRecorder records what passes through a transport.
func NewRecorder(t Transport) *Recorder {
	return &Recorder{Transport: t, asked: map[uint32]question{}, answers: map[question]string{}}
}

// Send sends a request.
func (r *Recorder) Send(d *Datagram, timeout time.Duration) error {
	at := questionOf(d)
	r.mu.Lock()
	r.asked[d.tid()] = at
	if _, again := r.answers[at]; !again {
		r.answers[at] = noAnswer
	}
	r.mu.Unlock()
	return r.Transport.Send(d, timeout)
}

// Receive waits for an answer.
func (r *Recorder) Receive(d *Datagram) error {
	err := r.Transport.Receive(d)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.asked[d.tid()]; ok && d.MAD[atMethod] == methodAnswer {
		r.answers[at] = answerText(d)
	}
	return nil
}

// Take returns the files of the answers since the last call, by path.
func (r *Recorder) Take() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := map[string][]string{}
	for at, text := range r.answers {
		lines[at.file] = append(lines[at.file], at.line+": "+text+"\n")
	}
	clear(r.asked)
	clear(r.answers)
	out := map[string][]byte{}
	for file, of := range lines {
		slices.SortFunc(of, inOrder)
		out[file] = []byte(strings.Join(of, ""))
	}
	return out
}

// inOrder sorts lines by attribute and number.
func inOrder(a, b string) int {
	return cmp.Or(strings.Compare(upTo(a, " "), upTo(b, " ")), cmp.Compare(len(upTo(a, ":")), len(upTo(b, ":"))),
		strings.Compare(a, b))
}

func upTo(s, separator string) string {
	s, _, _ = strings.Cut(s, separator)
	return s
}

// Player is a transport that answers from a recording.
type Player struct {
	read    func(file string) ([]byte, error)
	answers chan *Datagram
	closed  chan struct{}
	end     func()
}

// NewPlayer answers from the files that read returns.
func NewPlayer(read func(file string) ([]byte, error)) *Player {
	closed := make(chan struct{})
	return &Player{
		read: read, answers: make(chan *Datagram), closed: closed, end: sync.OnceFunc(func() { close(closed) }),
	}
}

// errClosed is the error of a transport after Close.
var errClosed = errors.New("the port is closed")

// Send answers a request. ErrTimeout: it had no answer, or was not made.
func (p *Player) Send(d *Datagram, _ time.Duration) error {
	at := questionOf(d)
	lines, err := p.read(at.file)
	if err != nil { // no such node was queried
		return ErrTimeout
	}
	for line := range strings.Lines(string(lines)) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), at.line+": ")
		if !ok {
			continue
		}
		answer, err := answered(d, text)
		if err == ErrTimeout {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", at.file, at.line, err)
		}
		select {
		case p.answers <- answer:
			return nil
		case <-p.closed:
			return errClosed
		}
	}
	return ErrTimeout
}

// Receive waits for an answer.
func (p *Player) Receive(d *Datagram) error {
	select {
	case answer := <-p.answers:
		*d = *answer
		return nil
	case <-p.closed:
		return errClosed
	}
}

// Close ends a waiting Receive.
func (p *Player) Close() error {
	p.end()
	return nil
}
