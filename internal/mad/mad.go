// Package mad is a client for InfiniBand management datagrams (MADs, IBA volume 1, chapter 13): it queries attributes
// of subnet and performance management. sysfs exposes local ports only. The package cannot change anything: the only
// method of its requests is Get.
//
// Attributes are decoded by pure functions. A Transport carries the datagrams.
package mad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Size is the size of a datagram (IBA 13.4.2).
const Size = 256

// Management classes (IBA 13.4.4).
const (
	ClassSubnetLID      = 0x01
	ClassPerformance    = 0x04
	ClassSubnetDirected = 0x81
)

// Offsets of the fields of the common header (IBA 13.4.2).
const (
	atClass     = 1
	atVersion   = 2
	atMethod    = 3
	atStatus    = 4
	atHops      = 7 // directed routes only, after the hop pointer (IBA 14.2.1.2)
	atTID       = 8
	atAttribute = 16
	atModifier  = 20
	atSLID      = 32 // directed routes only
	atDLID      = 34
	atData      = 64
	atPath      = 128
)

const (
	baseVersion  = 1
	classVersion = 1 // of subnet management and of performance management
	methodGet    = 0x01
	methodAnswer = 0x81

	permissiveLID  = 0xffff
	directedStatus = 0x7fff // the first bit is the direction
	statusBusy     = 0x0001
)

// Datagram is a datagram with its addressing.
type Datagram struct {
	LID       uint16 // destination; 0xffff for a directed route
	QP        uint32 // 0 for subnet management, 1 for the other classes
	PKeyIndex uint16 // in the table of the local port
	MAD       [Size]byte
}

// Class returns the management class.
func (d *Datagram) Class() uint8 { return d.MAD[atClass] }

// tid returns our half of the transaction ID. The kernel and ibsim write the other half.
func (d *Datagram) tid() uint32 { return binary.BigEndian.Uint32(d.MAD[atTID+4:]) }

// Transport carries the datagrams of a local port. Send and Receive may be called concurrently.
type Transport interface {
	// Send sends a request. The answer is not expected after timeout.
	Send(d *Datagram, timeout time.Duration) error
	// Receive waits for the next answer. An error is final.
	Receive(d *Datagram) error
	// Close ends a waiting Receive.
	Close() error
}

// ErrTimeout is the error of a request without an answer.
var ErrTimeout = errors.New("no answer")

// ErrMalformed is the error of an answer that does not match its request.
var ErrMalformed = errors.New("malformed answer")

// StatusError is the status of an agent's answer that is not success (IBA 13.4.7).
type StatusError uint16

func (e StatusError) Error() string {
	invalid := [...]string{
		"", "class version not supported", "method not supported", "attribute not supported",
		7: "invalid attribute or modifier",
	}
	switch code := int(e>>2) & 7; {
	case e&statusBusy != 0:
		return "agent is busy"
	case e&2 != 0:
		return "agent redirects, redirection is not supported"
	case invalid[code] != "":
		return invalid[code]
	}
	return fmt.Sprintf("status %#04x", uint16(e))
}

// request queries an attribute.
type request struct {
	class     uint8
	attribute uint16
	modifier  uint32
	port      uint8 // PortSelect, performance management only (IBA 16.1.3.5)
	route     Route
}

// encode writes the request into a datagram.
func (q *request) encode(d *Datagram, tid uint32, pkeyIndex uint16) {
	*d = Datagram{LID: q.route.lid}
	m := &d.MAD
	m[0], m[atClass], m[atVersion], m[atMethod] = baseVersion, q.class, classVersion, methodGet
	binary.BigEndian.PutUint32(m[atTID+4:], tid)
	binary.BigEndian.PutUint16(m[atAttribute:], q.attribute)
	binary.BigEndian.PutUint32(m[atModifier:], q.modifier)
	switch q.class {
	case ClassPerformance:
		d.QP, d.PKeyIndex = 1, pkeyIndex
		m[atData+1] = q.port
	case ClassSubnetDirected:
		d.LID = permissiveLID
		m[atHops] = uint8(len(q.route.path))
		binary.BigEndian.PutUint16(m[atSLID:], permissiveLID)
		binary.BigEndian.PutUint16(m[atDLID:], permissiveLID)
		copy(m[atPath+1:], q.route.path)
	}
}

// decode returns the attribute of an answer.
func (q *request) decode(d *Datagram) ([]byte, error) {
	m := &d.MAD
	attribute := binary.BigEndian.Uint16(m[atAttribute:])
	if m[0] != baseVersion || m[atClass] != q.class || m[atMethod] != methodAnswer || attribute != q.attribute {
		return nil, fmt.Errorf("%w: version %d, class %#02x, method %#02x, attribute %#04x",
			ErrMalformed, m[0], m[atClass], m[atMethod], attribute)
	}
	status := binary.BigEndian.Uint16(m[atStatus:])
	if q.class == ClassSubnetDirected {
		status &= directedStatus
	}
	if status != 0 {
		return nil, StatusError(status)
	}
	if q.class == ClassPerformance {
		return m[atData:], nil
	}
	return m[atData:atPath], nil
}
