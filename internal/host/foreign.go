package host

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/transceiver"
)

// ErrOtherNetwork is wrapped where nothing was asked since the answer would be about another network namespace. It is a want of permission:
// no fault of a device, and the same until the exporter is run otherwise.
var ErrOtherNetwork = fmt.Errorf("%w: this is not the network namespace of the host", syscall.EPERM)

// hostNetwork is what it needs.
const hostNetwork = "the network namespace of the host (--network host, hostNetwork)"

// networkInterval spaces the looks at which network namespace this process is in; doubtInterval those after one that found another: an
// interface that is about to go leaves /proc/net/dev before sysfs.
const (
	networkInterval = time.Minute
	doubtInterval   = time.Second
)

// network knows whether the kernel, asked for an interface by name, would tell this process of those that the sys tree shows: in a container
// with a network of its own the same name is another interface, and devlink knows no device.
type network struct {
	files   Files
	own     string                                        // the interfaces of this process' network namespace
	address func(netdev string) (net.HardwareAddr, error) // that of one of them

	mu  sync.Mutex
	at  time.Time
	err error
}

func newNetwork(files Files) *network {
	return &network{files: files, own: ownNetdevs, address: hardwareAddress}
}

// same is nil where it would. Interfaces of hardware decide, which seldom come and go.
func (n *network) same() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	interval := networkInterval
	if n.err != nil {
		interval = doubtInterval
	}
	if now := time.Now(); n.at.IsZero() || now.Sub(n.at) >= interval {
		n.at, n.err = now, n.look()
	}
	return n.err
}

func (n *network) look() (err error) {
	for range 3 { // one that has just come is not everywhere yet
		var foreign string
		if foreign, err = n.foreign(); err != nil || foreign == "" {
			return nil // what cannot be told is not held against it
		}
		err = fmt.Errorf("%w: %s is in sys/class/net and not in %s, or is another one there", ErrOtherNetwork, foreign, n.own)
	}
	return err
}

// foreign names an interface of hardware that the sys tree shows and this process has not, or has one of another address by that name.
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

// alike says whether what the sys tree shows in dir is the interface that this process knows by that name, as far as can be told.
func (n *network) alike(dir, name string) bool {
	shown, err := readText(n.files, dir, "address")
	if err != nil {
		return true
	}
	own, err := n.address(name)
	return err != nil || strings.HasPrefix(shown, own.String())
}

// hardwareAddress asks the kernel, which takes no lock of its configuration for it: SIOCGIFHWADDR, net/core/dev_ioctl.c. Of one longer
// than that of Ethernet, as InfiniBand's, it is the beginning.
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
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFHWADDR, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return nil, errno
	}
	return request.address[:6], nil
}

// ask is asked in the network namespace of the sys tree only.
func ask[T any](n *network, path string, question func() (T, error)) (T, error) {
	if err := n.same(); err != nil {
		var none T
		return none, &Error{"ask", path, err}
	}
	return question()
}

// ethtoolHere, devlinkHere and dcbHere ask where the answers are about this machine's interfaces.
type (
	ethtoolHere struct {
		*network
		Ethtool
	}
	devlinkHere struct {
		*network
		Devlink
	}
	dcbHere struct {
		*network
		DCB
	}
)

func (h ethtoolHere) LinkModes(ctx context.Context, netdev string) (LinkModes, error) {
	return ask(h.network, "ethtool/"+netdev, func() (LinkModes, error) { return h.Ethtool.LinkModes(ctx, netdev) })
}

func (h ethtoolHere) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	return ask(h.network, "ethtool/"+netdev, func() ([]byte, error) { return h.Ethtool.ModuleEEPROM(ctx, netdev, ref) })
}

func (h ethtoolHere) LinkState(ctx context.Context, netdev string) (LinkState, error) {
	return ask(h.network, "ethtool/"+netdev, func() (LinkState, error) { return h.Ethtool.LinkState(ctx, netdev) })
}

func (h ethtoolHere) Pause(ctx context.Context, netdev string) (Pause, error) {
	return ask(h.network, "ethtool/"+netdev, func() (Pause, error) { return h.Ethtool.Pause(ctx, netdev) })
}

func (h ethtoolHere) FEC(ctx context.Context, netdev string) (FEC, error) {
	return ask(h.network, "ethtool/"+netdev, func() (FEC, error) { return h.Ethtool.FEC(ctx, netdev) })
}

func (h ethtoolHere) NetdevStats(ctx context.Context, netdev string) ([]Stat, error) {
	return ask(h.network, "ethtool/"+netdev, func() ([]Stat, error) { return h.Ethtool.NetdevStats(ctx, netdev) })
}

func (h ethtoolHere) StandardStats(ctx context.Context, netdev string) ([]Stat, error) {
	return ask(h.network, "ethtool/"+netdev, func() ([]Stat, error) { return h.Ethtool.StandardStats(ctx, netdev) })
}

func (h devlinkHere) Health(ctx context.Context) ([]HealthReporter, error) {
	return ask(h.network, "devlink/health", func() ([]HealthReporter, error) { return h.Devlink.Health(ctx) })
}

func (h dcbHere) IEEE(ctx context.Context, netdev string) (DCBConfig, error) {
	return ask(h.network, "dcb/"+netdev+"/ieee", func() (DCBConfig, error) { return h.DCB.IEEE(ctx, netdev) })
}
