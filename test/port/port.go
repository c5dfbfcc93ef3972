// Package port lets the kernel choose the TCP ports of programs in tests: a port that is free when a test selects it
// may be in use when it is needed.
package port

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Any is the address to listen on for a port chosen by the kernel. Of returns it.
const Any = "127.0.0.1:0"

// patience covers programs that are traced or run on an emulated processor.
const patience = 2 * time.Minute

// Await waits until a process and its descendants listen on n TCP ports, and returns the addresses in order. It uses
// kernel data instead of the program's log: that works for every program and every log level.
func Await(ctx context.Context, pid, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		found, err := listening(pid)
		if err != nil || len(found) >= n {
			return found, err
		}
		if ended(pid) {
			return nil, fmt.Errorf("process %d ended before it listened on a TCP port", pid)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("process %d listens on %d TCP ports, want %d: %w", pid, len(found), n, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ended reports whether a process has exited, even if its parent has not waited for it (proc_pid_stat(5): state Z).
func ended(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	state := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	return len(state) == 0 || state[0] == "Z" || state[0] == "X"
}

// listening returns the addresses that a process and its descendants listen on.
func listening(pid int) ([]string, error) {
	var out []string
	sockets := socketsOf(pid)
	for _, table := range []string{"tcp", "tcp6"} {
		found, err := listeners(fmt.Sprintf("/proc/%d/net/%s", pid, table), sockets)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	for _, name := range children {
		b, _ := os.ReadFile(name) // the thread may have ended
		for child := range strings.FieldsSeq(string(b)) {
			id, err := strconv.Atoi(child)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			found, err := listening(id)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil // a child may have the socket of its parent
}

// socketsOf returns the inodes of the sockets that a process has open.
func socketsOf(pid int) map[string]bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, _ := os.ReadDir(dir) // the process may have ended
	out := map[string]bool{}
	for _, f := range files {
		to, _ := os.Readlink(filepath.Join(dir, f.Name())) // it may have been closed
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out
}

// listeners returns the local addresses of those sockets in a table that listen (proc_pid_net(5): st 0A is TCP_LISTEN).
func listeners(table string, sockets map[string]bool) ([]string, error) {
	f, err := os.Open(table)
	if err != nil {
		return nil, nil // the process has ended, or the kernel has no IPv6
	}
	defer func() { _ = f.Close() }()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		column := strings.Fields(s.Text()) // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
		if len(column) < 10 || column[3] != "0A" || !sockets[column[9]] {
			continue
		}
		a, err := address(column[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
		out = append(out, a.String())
	}
	return out, nil
}

// address parses 0100007F:1F90. The kernel prints an address as 32-bit words in host byte order, and the port as a
// number.
func address(text string) (netip.AddrPort, error) {
	words, number, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(words)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, fmt.Errorf("%q is no address: %w", text, err)
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(number, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address and port", text)
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}
