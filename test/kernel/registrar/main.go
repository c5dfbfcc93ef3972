// Registrar registers memory with an RDMA device through /dev/infiniband/uverbsN, as a library does it for a driver
// without one: its own memory, and DMA-BUFs of udmabuf. It runs in the virtual machine.
//
//	registrar DEVICE dmabuf=N host=N churn=N qp=0|1
//
// It registers N DMA-BUFs of 64 KiB and N regions of 8 KiB, registers and releases a DMA-BUF churn times, prints
// "ready", and holds what it has until its standard input ends.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Sizes of what is registered.
const (
	dmabufSize = 64 << 10
	hostSize   = 8 << 10
	// pause is after each thousand of registrations: below the rate at which the exporter detaches.
	pause = 300 * time.Millisecond
)

func run(device string, args []string) error {
	counts := map[string]int{}
	for _, a := range args {
		name, number, _ := strings.Cut(a, "=")
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		counts[name] = n
	}
	u, err := open(device)
	if err != nil {
		return err
	}
	defer u.file.Close()
	buffer, err := udmabuf()
	if err != nil {
		return err
	}
	for range counts["dmabuf"] {
		if _, err := u.registerDMABUF(buffer); err != nil {
			return err
		}
	}
	if counts["host"] > 0 {
		memory, err := unix.Mmap(-1, 0, hostSize*counts["host"], unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		if err != nil {
			return err
		}
		for i := range counts["host"] {
			if _, err := u.registerHost(memory[i*hostSize:][:hostSize]); err != nil {
				return err
			}
		}
	}
	start := time.Now()
	var paused time.Duration
	for i := range counts["churn"] {
		region, err := u.registerDMABUF(buffer)
		if err != nil {
			return err
		}
		if err := u.release(region); err != nil {
			return err
		}
		if i%1000 == 999 && counts["unpaced"] == 0 {
			time.Sleep(pause)
			paused += pause
		}
	}
	if counts["qp"] > 0 {
		if err := u.createQP(); err != nil {
			return err
		}
	}
	fmt.Println("ready", os.Getpid(), "ns", (time.Since(start)-paused).Nanoseconds()/int64(max(1, counts["churn"])))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// udmabuf makes a DMA-BUF of a sealed memory file (include/uapi/linux/udmabuf.h).
func udmabuf() (int, error) {
	fd, err := unix.MemfdCreate("registrar", unix.MFD_ALLOW_SEALING)
	if err != nil {
		return 0, err
	}
	if err := unix.Ftruncate(fd, dmabufSize); err != nil {
		return 0, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return 0, err
	}
	dev, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	create := struct {
		memfd, flags uint32
		offset, size uint64
	}{memfd: uint32(fd), size: dmabufSize}
	const udmabufCreate = 0x40187542 // _IOW('u', 0x42, struct udmabuf_create)
	buffer, _, errno := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), udmabufCreate, uintptr(unsafe.Pointer(&create)))
	if errno != 0 {
		return 0, fmt.Errorf("udmabuf: %w", errno)
	}
	return int(buffer), nil
}

// uverbs is an open device with a context and a protection domain (include/uapi/rdma/ib_user_verbs.h).
type uverbs struct {
	file *os.File
	pd   uint32
}

// Commands of write(2).
const (
	cmdGetContext = 0
	cmdAllocPD    = 3
	cmdRegMR      = 9
	cmdDeregMR    = 13
	cmdCreateCQ   = 18
	cmdCreateQP   = 24
)

func open(device string) (*uverbs, error) {
	names, err := os.ReadDir("/sys/class/infiniband_verbs")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		ibdev, err := os.ReadFile("/sys/class/infiniband_verbs/" + n.Name() + "/ibdev")
		if err != nil || strings.TrimSpace(string(ibdev)) != device {
			continue
		}
		file, err := os.OpenFile("/dev/infiniband/"+n.Name(), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		u := &uverbs{file: file}
		if _, err := u.command(cmdGetContext, nil, 2); err != nil {
			return nil, fmt.Errorf("context: %w", err)
		}
		pd, err := u.command(cmdAllocPD, nil, 1)
		if err != nil {
			return nil, fmt.Errorf("protection domain: %w", err)
		}
		u.pd = pd[0]
		return u, nil
	}
	return nil, errors.New("no uverbs of " + device)
}

// command writes a command with the address of its response, if it has one, and its arguments.
func (u *uverbs) command(number uint32, arguments []uint32, out int) ([]uint32, error) {
	response := make([]uint32, max(1, out))
	words := []uint32{number, 0}
	if out > 0 {
		address := uint64(uintptr(unsafe.Pointer(&response[0])))
		words = append(words, uint32(address), uint32(address>>32))
	}
	words = append(words, arguments...)
	words[1] = uint32(len(words)) | uint32(out)<<16
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	if _, err := unix.Write(int(u.file.Fd()), b); err != nil {
		return nil, err
	}
	return response, nil
}

const accessLocalWrite = 1

func (u *uverbs) registerHost(memory []byte) (uint32, error) {
	address := uint64(uintptr(unsafe.Pointer(&memory[0])))
	r, err := u.command(cmdRegMR, []uint32{
		uint32(address), uint32(address >> 32), uint32(len(memory)), 0, uint32(address), uint32(address >> 32),
		u.pd, accessLocalWrite,
	}, 3)
	if err != nil {
		return 0, fmt.Errorf("register host memory: %w", err)
	}
	return r[0], nil
}

func (u *uverbs) release(region uint32) error {
	if _, err := u.command(cmdDeregMR, []uint32{region}, 0); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// createQP creates a completion queue and a reliable connected queue pair.
func (u *uverbs) createQP() error {
	cq, err := u.command(cmdCreateCQ, []uint32{0, 0, 16, 0, 0xffffffff, 0}, 2)
	if err != nil {
		return fmt.Errorf("completion queue: %w", err)
	}
	const reliableConnected = 2
	_, err = u.command(cmdCreateQP, []uint32{0, 0, u.pd, cq[0], cq[0], 0, 1, 1, 1, 1, 0, reliableConnected << 8}, 8)
	if err != nil {
		return fmt.Errorf("queue pair: %w", err)
	}
	return nil
}

// attribute is struct ib_uverbs_attr of include/uapi/rdma/rdma_user_ioctl_cmds.h.
type attribute struct {
	id, length, flags, data uint16
	value                   uint64
}

// registerDMABUF is UVERBS_METHOD_REG_DMABUF_MR.
func (u *uverbs) registerDMABUF(buffer int) (uint32, error) {
	const (
		command                                      = 0xc0181b01 // RDMA_VERBS_IOCTL
		objectMR                                     = 7
		methodRegDMABUF                              = 4
		handle, pd, offset, length, iova, fd, access = 0, 1, 2, 3, 4, 5, 6
		lkey, rkey                                   = 7, 8
		mandatory                                    = 1
	)
	var keys [2]uint32
	request := struct {
		length, object, method, attributes uint16
		reserved                           uint64
		driver, reserved2                  uint32
		attribute                          [9]attribute
	}{object: objectMR, method: methodRegDMABUF, attributes: 9}
	request.length = uint16(unsafe.Sizeof(request))
	request.attribute = [9]attribute{
		{id: handle, flags: mandatory},
		{id: pd, flags: mandatory, value: uint64(u.pd)},
		{id: offset, length: 8, flags: mandatory},
		{id: length, length: 8, flags: mandatory, value: dmabufSize},
		{id: iova, length: 8, flags: mandatory},
		{id: fd, length: 4, flags: mandatory, value: uint64(buffer)},
		{id: access, length: 8, flags: mandatory, value: accessLocalWrite},
		{id: lkey, length: 4, flags: mandatory, value: uint64(uintptr(unsafe.Pointer(&keys[0])))},
		{id: rkey, length: 4, flags: mandatory, value: uint64(uintptr(unsafe.Pointer(&keys[1])))},
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, u.file.Fd(), command, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return 0, fmt.Errorf("register DMA-BUF: %w", errno)
	}
	return uint32(request.attribute[handle].value), nil
}
