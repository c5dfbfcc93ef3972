package netlink

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// networkInterval is the interval of checks of the network namespace; doubtInterval that after a mismatch: an interface
// that is being removed leaves /proc/net/dev before sysfs.
const (
	networkInterval = time.Minute
	doubtInterval   = time.Second
)

// network checks whether queries by interface name refer to the interfaces in the sys tree. In a container with its own
// network namespace the same name is another interface, and devlink has no devices.
type network struct {
	files   host.Files
	Copied  bool                                          // from another machine: no query is about its interfaces
	own     string                                        // the interfaces of the process's network namespace
	address func(netdev string) (net.HardwareAddr, error) // of an interface in that namespace

	mu  sync.Mutex
	at  time.Time
	err error
}

// NewNetwork returns the network namespace of the host that a tree shows.
func NewNetwork(files host.Files) *network {
	return &network{files: files, own: ownNetdevs, address: hardwareAddress}
}

// same returns nil if they do. It compares hardware interfaces, which rarely change. A nil network is not checked.
func (n *network) same() error {
	switch {
	case n == nil:
		return nil
	case n.Copied:
		return syscall.EPROTONOSUPPORT
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	interval := networkInterval
	if n.err != nil {
		interval = doubtInterval
	}
	if now := time.Now(); n.at.IsZero() || now.Sub(n.at) >= interval {
		n.at, n.err = now, n.check()
	}
	return n.err
}

func (n *network) check() (err error) {
	for range 3 { // a new interface does not appear everywhere at once
		var foreign string
		if foreign, err = n.foreign(); err != nil || foreign == "" {
			return nil // in doubt the namespace is accepted
		}
		err = fmt.Errorf("%w: %s is in sys/class/net and not in %s, or differs there", access.ErrOtherNetwork, foreign, n.own)
	}
	return err
}

// foreign returns a hardware interface of the sys tree that this process does not have, or has with another address.
func (n *network) foreign() (string, error) {
	own, shown, err := netdevsOf(n.files, n.own)
	if err != nil {
		return "", err
	}
	for _, name := range shown {
		dir := "sys/class/net/" + name
		if _, err := n.files.Resolve(dir + "/device"); err == nil && !(slices.Contains(own, name) && n.alike(dir, name)) {
			return name, nil
		}
	}
	return "", nil
}

// alike reports whether the interface in dir of the sys tree is the one that this process has under that name, as far
// as can be determined.
func (n *network) alike(dir, name string) bool {
	shown, err := rooted.ReadText(n.files, dir, "address")
	if err != nil {
		return true
	}
	own, err := n.address(name)
	return err != nil || strings.HasPrefix(shown, own.String())
}

// hardwareAddress queries the kernel without taking rtnl: SIOCGIFHWADDR, net/core/dev_ioctl.c. An address longer than
// that of Ethernet (InfiniBand) is truncated.
func hardwareAddress(netdev string) (net.HardwareAddr, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var request struct { // struct ifreq
		name    [unix.IFNAMSIZ]byte
		family  uint16
		address [22]byte
	}
	if copy(request.name[:], netdev) == len(request.name) {
		return nil, unix.ENAMETOOLONG
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFHWADDR,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return nil, errno
	}
	return request.address[:6], nil
}

// query makes a query about an object in the network namespace of the sys tree. Errors have the object and what is
// queried of it.
func query[T any](n *network, object, what string, question func() (T, error)) (answer T, err error) {
	if err := n.same(); err != nil {
		return answer, &access.Error{Op: "query", Path: object, Err: err}
	}
	if answer, err = question(); err != nil {
		return answer, &access.Error{Op: "query", Path: object + what, Err: err}
	}
	return answer, nil
}
