// Package kmsg reads the kernel log from /dev/kmsg.
package kmsg

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/kernellog"
	"rdma_exporter/internal/pci"
)

const (
	kmsgFile = "dev/kmsg"
	// kmsgRecord is the size limit of a record: PRINTK_MESSAGE_MAX of kernel/printk/internal.h.
	kmsgRecord = 8192
	// kmsgRecords is how many records a reading takes at most: the log of a boot. It is a bound of its time.
	kmsgRecords = 20000
	// kmsgRate is how many records are examined per second since the last reading, kmsgBurst how many at least. Of others
	// each kmsgSample-th is.
	kmsgRate   = 100
	kmsgBurst  = 1000
	kmsgSample = 10
)

// Kmsg reads /dev/kmsg (kernel/printk/printk.c, devkmsg_read): a record for each read, from the oldest. The descriptor
// is non-blocking and stays open: it is the place in the log.
type Kmsg struct {
	open func() (int, error)

	mu      sync.Mutex
	fd      int // -1: not open
	last    time.Time
	next    uint64 // number of the next record; 0: unknown
	join    kernellog.Joiner
	newest  record // examined
	events  []host.KernelEvent
	lost    uint64
	dropped uint64
	skipped uint64
	credit  int // records to examine
	buf     []byte
}

// NewKmsg returns the kernel log of a tree, which is opened at the first read.
func NewKmsg(t *rooted.Tree) *Kmsg {
	return &Kmsg{fd: -1, open: func() (int, error) { return t.Open(kmsgFile, unix.O_RDONLY|unix.O_NONBLOCK) }}
}

// record is a line of the log.
type record struct {
	seq  uint64
	at   time.Duration // since boot
	text string
}

func (k *Kmsg) KernelLog(context.Context) (host.KernelLogReading, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fd < 0 {
		fd, err := k.open()
		if err != nil {
			return host.KernelLogReading{}, &access.Error{Op: "open", Path: kmsgFile, Err: err}
		}
		k.fd, k.buf = fd, make([]byte, kmsgRecord)
	}
	now := time.Now()
	k.credit = max(kmsgBurst, int(min(now.Sub(k.last).Seconds()*kmsgRate, kmsgRecords)))
	k.last = now
	err := access.Wrapped("read", kmsgFile, k.read())
	return host.KernelLogReading{
		Events: append([]host.KernelEvent(nil), k.events...), Lost: k.lost, Dropped: k.dropped, Skipped: k.skipped,
	}, err
}

// read takes the records that wait, at most kmsgRecords.
func (k *Kmsg) read() error {
	for range kmsgRecords {
		got, err := unix.Read(k.fd, k.buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EPIPE):
			// EPIPE: overwritten; the next read continues with the oldest record.
			continue
		case errors.Is(err, unix.EAGAIN), err == nil && got == 0:
			k.flush()
			return nil
		case err != nil:
			return err
		}
		k.record(k.buf[:got])
	}
	return nil
}

// record takes one record; one that is malformed is left out.
func (k *Kmsg) record(b []byte) {
	seq, at, text, function, ok := parseRecord(b)
	if !ok {
		return
	}
	if k.next != 0 && seq > k.next {
		k.lost += seq - k.next
	}
	k.next = seq + 1
	if text == "" {
		return
	}
	if k.credit > 0 {
		k.credit--
	} else if seq%kmsgSample != 0 {
		k.skipped++
		return
	}
	k.newest = record{seq, at, text}
	e, ok := k.join.Line(at, text)
	if !ok {
		return
	}
	e.PCIAddress = cmp.Or(e.PCIAddress, function)
	k.add(e)
}

// add keeps the event of the newest record.
func (k *Kmsg) add(e kernellog.Event) {
	if len(k.events) == host.MaxKernelEvents {
		k.events = k.events[:copy(k.events, k.events[1:])]
		k.dropped++
	}
	k.events = append(k.events, host.KernelEvent{
		Seq: k.newest.seq, At: k.newest.at, Event: e, Line: strings.ToValidUTF8(k.newest.text, "?"),
	})
}

// flush takes the report at the end of the log whose last line is not printed yet.
func (k *Kmsg) flush() {
	if e, ok := k.join.Flush(); ok {
		k.add(e)
	}
}

func (k *Kmsg) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fd < 0 {
		return nil
	}
	fd := k.fd
	k.fd = -1
	return unix.Close(fd)
}

// parseRecord parses "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT\n KEY=VALUE\n…"
// (Documentation/ABI/testing/dev-kmsg). Text written by user space has facility 1 and more, above the three bits of the
// level: it is no record of the kernel. function is the PCI function of the dictionary, DEVICE=+pci:0000:4d:00.0
// (drivers/base/core.c, set_dev_info).
func parseRecord(b []byte) (seq uint64, at time.Duration, text, function string, ok bool) {
	head, rest, found := bytes.Cut(b, []byte(";"))
	fields := strings.SplitN(string(head), ",", 5)
	if !found || len(fields) < 4 {
		return 0, 0, "", "", false
	}
	priority, err1 := strconv.ParseUint(fields[0], 10, 32)
	seq, err2 := strconv.ParseUint(fields[1], 10, 64)
	micros, err3 := strconv.ParseUint(fields[2], 10, 63)
	if errors.Join(err1, err2, err3) != nil || micros > 1<<53 {
		return 0, 0, "", "", false
	}
	if priority>>3 != 0 {
		rest = nil
	}
	line, dictionary, _ := bytes.Cut(rest, []byte("\n"))
	if _, device, found := bytes.Cut(dictionary, []byte(" DEVICE=+pci:")); found {
		device, _, _ = bytes.Cut(device, []byte("\n"))
		if pci.IsAddress(string(device)) {
			function = string(device)
		}
	}
	return seq, time.Duration(micros) * time.Microsecond, string(line), function, true
}
