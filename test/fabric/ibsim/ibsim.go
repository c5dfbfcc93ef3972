// Package ibsim sends management datagrams to ibsim, a fabric simulator, like its library libumad2sim for C programs.
package ibsim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"rdma_exporter/internal/mad"
)

// The protocol is that of ibsim 0.10: sim_ctl and sim_request of include/ibsim.h over datagram sockets with abstract
// names.
const (
	magic         = 0xdeadbeef
	controlSize   = 16 + 64
	requestHeader = 32

	controlError      = 0
	controlConnect    = 1
	controlDisconnect = 2

	patience = 5 * time.Second
)

// Port is a port of the simulated fabric: a mad.Transport.
type Port struct {
	control, data *net.UnixConn
	id            uint32
	out           *net.UnixAddr
}

// address of a socket; ibsim's names end with a NUL.
func address(format string, args ...any) *net.UnixAddr {
	return &net.UnixAddr{Name: "@" + fmt.Sprintf(format, args...) + "\x00", Net: "unixgram"}
}

// clients are identified by a number that ibsim takes for a PID.
var clients atomic.Uint32

// Dial attaches to a node of the net file (empty: the first one) in the simulator whose IBSIM_SOCKNAME is name.
func Dial(name, node string) (*Port, error) {
	id := uint32(os.Getpid())<<8 + clients.Add(1)&0xff
	p := &Port{}
	var err error
	if p.control, err = net.DialUnix("unixgram", address("%s:ctl%d", name, id), address("%s:ctl", name)); err != nil {
		return nil, err
	}
	if p.data, err = net.ListenUnixgram("unixgram", address("%s:in%d", name, id)); err != nil {
		return nil, errors.Join(err, p.control.Close())
	}
	info := make([]byte, 44) // struct sim_client_info: id, qp, issm, nodeid
	binary.NativeEndian.PutUint32(info, id)
	copy(info[12:], node)
	answer, err := p.command(controlConnect, info)
	if err != nil {
		return nil, errors.Join(err, p.control.Close(), p.data.Close())
	}
	p.id = binary.NativeEndian.Uint32(answer)
	p.out = address("%s:out%d", name, p.id)
	return p, nil
}

func (p *Port) command(kind uint32, data []byte) ([]byte, error) {
	b := make([]byte, controlSize)
	for i, v := range []uint32{magic, p.id, kind, uint32(len(data))} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	copy(b[16:], data)
	if err := p.control.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := p.control.Write(b); err != nil {
		return nil, err
	}
	n, err := p.control.Read(b)
	if err != nil {
		return nil, err
	}
	if n != controlSize || binary.NativeEndian.Uint32(b[8:]) == controlError {
		return nil, fmt.Errorf("ibsim refuses request %d", kind)
	}
	return b[16:], nil
}

// Send sends a datagram.
func (p *Port) Send(d *mad.Datagram, _ time.Duration) error {
	var b [requestHeader + mad.Size]byte
	binary.BigEndian.PutUint16(b[0:], d.LID) // in network order at the start of a word
	if d.Class() == mad.ClassSubnetDirected {
		binary.BigEndian.PutUint16(b[4:], d.LID)
	}
	binary.BigEndian.PutUint32(b[8:], d.QP)
	binary.BigEndian.PutUint32(b[12:], d.QP)
	binary.BigEndian.PutUint64(b[24:], mad.Size)
	copy(b[requestHeader:], d.MAD[:])
	_, err := p.data.WriteToUnix(b[:], p.out)
	return err
}

// Receive waits for an answer. Requests that ibsim could not deliver are returned with a status and skipped.
func (p *Port) Receive(d *mad.Datagram) error {
	var b [requestHeader + mad.Size]byte
	for {
		n, _, err := p.data.ReadFromUnix(b[:])
		if err != nil {
			return err
		}
		if n == len(b) && binary.BigEndian.Uint32(b[16:]) == 0 {
			*d = mad.Datagram{}
			copy(d.MAD[:], b[requestHeader:])
			return nil
		}
	}
}

// Close detaches.
func (p *Port) Close() error {
	_, err := p.command(controlDisconnect, nil)
	return errors.Join(err, p.control.Close(), p.data.Close())
}
