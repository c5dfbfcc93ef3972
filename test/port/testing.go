package port

import (
	"fmt"
	"syscall"
	"testing"
)

// Of waits until a process that was started with Any listens, and returns its address.
func Of(t testing.TB, pid int) string {
	t.Helper()
	all, err := Await(t.Context(), pid, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// Held returns an address of the loopback interface with a reserved port chosen by the kernel. Connections are refused
// until a program listens on it. It is for an address that is needed before the program runs, or while it does not.
//
// The port is bound by a socket that does not listen. The kernel does not assign it to other sockets, and allows a
// program to bind it with SO_REUSEADDR, which every Go listener sets (inet_csk_get_port in
// net/ipv4/inet_connection_sock.c).
func Held(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("%T is no address of IPv4", name)
	}
	return fmt.Sprintf("127.0.0.1:%d", a.Port)
}
