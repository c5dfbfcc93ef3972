// Package umad sends management datagrams through the devices of the kernel, and asks the subnet with them.
package umad

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/mad"
)

// User space sends management datagrams through /dev/infiniband/umadN (include/uapi/rdma/ib_user_mad.h), one file per
// port. A process that can open it can send any datagram, so access is restricted to root. Package mad limits what this
// program sends.
const (
	umadClass    = "sys/class/infiniband_mad"
	umadDev      = "dev/infiniband"
	umadABI      = 5
	umadRegister = 0xc0281b04 // IB_USER_MAD_REGISTER_AGENT2: _IOWR(0x1b, 4, struct ib_user_mad_reg_req2)
	umadPKey     = 0x1b03     // IB_USER_MAD_ENABLE_PKEY: the header has a P_Key index

	HeaderSize = 64 // struct ib_user_mad_hdr
	umadQKey   = 0x80010000
)

// umadAgent is struct ib_user_mad_reg_req2.
type umadAgent struct {
	id             uint32 // assigned by the kernel
	qpn            uint32
	class, version uint8
	_              uint16
	flags          uint32
	methods        [2]uint64 // of requests to receive: none
	oui            uint32
	rmppVersion    uint8
	_              [3]uint8
}

// umad is a mad.Transport.
type umad struct {
	file   *os.File
	agents map[uint8]uint32 // by class
}

func newUMAD(fd int, name string) *umad {
	return &umad{file: os.NewFile(uintptr(fd), name), agents: map[uint8]uint32{}}
}

// MADPort is a local port for management datagrams.
type MADPort struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	GUID   string `json:"guid"` // of the node, as in sysfs: device names may change
	file   string
}

func (p MADPort) String() string { return fmt.Sprintf("%s/%d", p.Device, p.Port) }

// OpenMAD opens a port for management datagrams. With an empty device or port 0 it is the first that is ACTIVE,
// otherwise the first with a link.
func OpenMAD(p rooted.Paths, device string, port int) (mad.Transport, MADPort, error) {
	t, err := rooted.Open(p)
	if err != nil {
		return nil, MADPort{}, err
	}
	defer t.Close()
	return OpenMADIn(t, device, port, mad.ClassSubnetLID, mad.ClassSubnetDirected, mad.ClassPerformance)
}

// FindMAD finds a port again that was opened before. It returns an error if the port does not exist or has no link.
func FindMAD(p rooted.Paths, was MADPort) (MADPort, error) {
	t, err := rooted.Open(p)
	if err != nil {
		return MADPort{}, err
	}
	defer t.Close()
	ports, err := madPorts(t)
	if err != nil {
		return MADPort{}, err
	}
	found := MADPort{}
	for _, p := range ports {
		p.GUID = nodeGUID(t, p)
		named := p.Device == was.Device
		if p.Port == was.Port && p.GUID == was.GUID && (named || p.GUID != "" && found.Device == "") {
			found = p
		}
	}
	switch {
	case found.Device == "":
		return MADPort{}, fmt.Errorf("%v of node %s, the port of earlier sweeps, does not exist: there are %v",
			was, was.GUID, ports)
	case madRank(t, found) == 1:
		return MADPort{}, fmt.Errorf("%v of node %s, the port of earlier sweeps, has no link", found, was.GUID)
	}
	return found, nil
}

// OpenMADIn is OpenMAD in an open tree, for datagrams of some classes.
func OpenMADIn(t *rooted.Tree, device string, port int, classes ...uint8) (mad.Transport, MADPort, error) {
	found, err := chooseMAD(t, device, port)
	if err != nil {
		return nil, MADPort{}, err
	}
	name := path.Join(umadDev, found.file)
	fd, err := t.Open(name, unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return nil, found, madError(&access.Error{Op: "open", Path: name, Err: err})
	}
	u := newUMAD(fd, name)
	if err := u.register(classes...); err != nil {
		return nil, found, errors.Join(&access.Error{Op: "register with", Path: name, Err: err}, u.file.Close())
	}
	return u, found, nil
}

func madError(err error) error {
	remedy := "check that the kernel module ib_umad is loaded and the device is available in this container"
	if access.NotPermitted(err) {
		remedy = "run as root or with CAP_DAC_OVERRIDE, or set the group of the file to that of the program"
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// madPorts returns the InfiniBand ports with a umad file.
func madPorts(files host.Files) ([]MADPort, error) {
	names, err := files.List(umadClass)
	if err != nil {
		return nil, madError(err)
	}
	if abi, err := rooted.ReadText(files, umadClass, "abi_version"); err != nil || abi != strconv.Itoa(umadABI) {
		return nil, fmt.Errorf("%s/abi_version is %q, only %d is supported", umadClass, abi, umadABI)
	}
	var ports []MADPort
	for _, name := range names {
		if !strings.HasPrefix(name, "umad") {
			continue
		}
		p := MADPort{file: name}
		p.Device, err = rooted.ReadText(files, umadClass+"/"+name, "ibdev")
		number, err2 := rooted.ReadText(files, umadClass+"/"+name, "port")
		p.Port, _ = strconv.Atoi(number)
		if err != nil || err2 != nil {
			continue
		}
		if layer, err := rooted.ReadText(files, portDir(p), "link_layer"); err != nil || layer != "InfiniBand" {
			continue
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// chooseMAD selects a port. The state is queried only of ports that match: each state is a query of the port.
func chooseMAD(files host.Files, device string, port int) (MADPort, error) {
	ports, err := madPorts(files)
	if err != nil {
		return MADPort{}, err
	}
	best, rank := MADPort{}, 0
	for _, p := range ports {
		switch {
		case device == p.Device && port == p.Port:
			best, rank = p, 3 // whatever its state
		case (device == "" || device == p.Device) && (port == 0 || port == p.Port):
			if r := madRank(files, p); r > rank {
				best, rank = p, r
			}
		}
	}
	if rank == 0 {
		return MADPort{}, fmt.Errorf("no InfiniBand port for management datagrams matches device %q, port %d (empty and 0 match any): there are %v", device, port, ports)
	}
	best.GUID = nodeGUID(files, best)
	return best, nil
}

// nodeGUID is empty if unreadable.
func nodeGUID(files host.Files, p MADPort) string {
	guid, _ := rooted.ReadText(files, host.ClassDir+"/"+p.Device, "node_guid")
	return guid
}

// portDir returns the directory of a port's attributes.
func portDir(p MADPort) string { return fmt.Sprintf("%s/%s/ports/%d", host.ClassDir, p.Device, p.Port) }

// madRank ranks an InfiniBand port: 1 without a link, 2 not yet configured by a subnet manager, 3 ACTIVE.
func madRank(files host.Files, p MADPort) int {
	state, err := rooted.ReadText(files, portDir(p), "state")
	switch {
	case err != nil, strings.HasPrefix(state, "1:"), strings.HasPrefix(state, "0:"):
		return 1
	case strings.HasPrefix(state, "4:"):
		return 3
	}
	return 2
}

// register registers an agent per class: answers are delivered to the agent that sent the request.
func (u *umad) register(classes ...uint8) error {
	raw, err := u.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, umadPKey, 0); errno != 0 {
			failed = errno
			return
		}
		for _, class := range classes {
			a := &umadAgent{class: class, version: 1, qpn: qpOf(class)}
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, umadRegister, uintptr(unsafe.Pointer(a))); errno != 0 {
				failed = fmt.Errorf("class %#02x: %w", class, errno)
				return
			}
			u.agents[class] = a.id
		}
	})
	return errors.Join(err, failed)
}

// qpOf returns the queue pair of a class (IBA 13.5.1).
func qpOf(class uint8) uint32 {
	if class == mad.ClassPerformance {
		return 1
	}
	return 0
}

// Send passes a datagram to the kernel. The kernel discards the transaction after the timeout.
func (u *umad) Send(d *mad.Datagram, timeout time.Duration) error {
	var b [HeaderSize + mad.Size]byte
	encodeUMAD(b[:], d, u.agents[d.Class()], timeout)
	_, err := u.file.Write(b[:])
	return access.Wrapped("send to", u.file.Name(), causeOf(err))
}

// encodeUMAD encodes struct ib_user_mad in host byte order, except for the fields in network byte order.
func encodeUMAD(b []byte, d *mad.Datagram, agent uint32, timeout time.Duration) {
	binary.NativeEndian.PutUint32(b, agent)
	binary.NativeEndian.PutUint32(b[8:], uint32(timeout.Milliseconds()))
	binary.BigEndian.PutUint32(b[20:], d.QP)
	if d.QP != 0 {
		binary.BigEndian.PutUint32(b[24:], umadQKey)
	}
	binary.BigEndian.PutUint16(b[28:], d.LID)
	binary.NativeEndian.PutUint16(b[56:], d.PKeyIndex)
	copy(b[HeaderSize:], d.MAD[:])
}

// Receive waits for an answer. Requests returned by the kernel as unanswered are skipped.
func (u *umad) Receive(d *mad.Datagram) error {
	var b [HeaderSize + 2048]byte // Omni-Path datagrams have this size
	for {
		n, err := u.file.Read(b[:])
		if err != nil {
			return &access.Error{Op: "receive from", Path: u.file.Name(), Err: causeOf(err)}
		}
		if DecodeUMAD(b[:n], d) {
			return nil
		}
	}
}

// DecodeUMAD reports whether a datagram is an answer: status is ETIMEDOUT for an unanswered request.
func DecodeUMAD(b []byte, d *mad.Datagram) bool {
	if len(b) < HeaderSize+mad.Size || binary.NativeEndian.Uint32(b[4:]) != 0 {
		return false
	}
	*d = mad.Datagram{
		QP: binary.BigEndian.Uint32(b[20:]), LID: binary.BigEndian.Uint16(b[28:]),
		PKeyIndex: binary.NativeEndian.Uint16(b[56:]),
	}
	copy(d.MAD[:], b[HeaderSize:])
	return true
}

// causeOf extracts the errno from an error of a file, whose name is reported separately.
func causeOf(err error) error {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return err
}

// Close unregisters the agents and ends Receive.
func (u *umad) Close() error { return u.file.Close() }
