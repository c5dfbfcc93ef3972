//go:build e2e

package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	bootTime    = 90 * time.Second // software emulation: 5 s on an idle machine
	commandTime = 4 * time.Minute
	offTime     = 20 * time.Second
	shareMount  = "/mnt"
)

// guest is the running virtual machine.
type guest struct {
	url     string // of the guest's exporter, from here
	modules string // of the one that reads modules
	share   string // folder that the guest has as shareMount
	conn    net.Conn
	replies *bufio.Reader
	lastID  int
}

// boot starts the virtual machine with the kernel and initramfs in folder images and waits until it takes commands.
func boot(t *testing.T, images string) *guest {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e") // t.TempDir may be too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	share := filepath.Join(dir, "share")
	if err := os.Mkdir(share, 0o755); err != nil {
		t.Fatal(err)
	}
	control := filepath.Join(dir, "control")
	listener, err := net.Listen("unix", control)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address, modules := freeAddress(t), freeAddress(t)

	console := filepath.Join(dir, "console")
	var qemuOutput bytes.Buffer
	// timeout: the machine does not outlive a test that is killed.
	qemu := exec.Command("timeout", append([]string{"1100", "qemu-system-x86_64"}, qemuArgs(images, console, control, address, modules, share)...)...)
	qemu.Stdout, qemu.Stderr = &qemuOutput, &qemuOutput
	if err := qemu.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		qemu.Wait()
		close(exited)
		listener.Close()
	}()
	t.Cleanup(func() {
		qemu.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("qemu:\n%s", qemuOutput.Bytes())
			logFile(t, console)
		}
	})

	conn, err := listener.Accept()
	if err != nil {
		t.Fatal("qemu did not start")
	}
	g := &guest{url: "http://" + address, modules: "http://" + modules, share: share, conn: conn, replies: bufio.NewReader(conn)}
	if _, err := g.reply("ready", bootTime); err != nil {
		t.Fatalf("no guest after %v: %v", bootTime, err)
	}
	t.Cleanup(func() {
		io.WriteString(conn, "0 poweroff -f\n")
		select {
		case <-exited:
		case <-time.After(offTime):
			t.Error("the guest does not power off")
		}
	})
	return g
}

func qemuArgs(images, console, control, address, modules, share string) []string {
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(images, "vmlinuz"), "-initrd", filepath.Join(images, "initramfs"),
		"-append", "console=ttyS0 loglevel=5 panic=-1 mitigations=off",
		"-serial", "file:" + console,
		"-chardev", "socket,id=control,path=" + control, "-serial", "chardev:control",
		"-netdev", "user,id=net,hostfwd=tcp:" + address + "-:" + guestPort + ",hostfwd=tcp:" + modules + "-:" + modulesPort,
		"-device", "virtio-net-pci,netdev=net,romfile=",
		"-virtfs", "local,path=" + share + ",mount_tag=share,security_model=none",
	}
	// Each behind a port of its own, for the test driver.
	for _, n := range []string{"1", "2"} {
		args = append(args,
			"-device", "pcie-root-port,id=port"+n+",chassis="+n+",x-speed=16,x-width=16",
			"-device", "e1000e,bus=port"+n+",romfile=")
	}
	return args
}

// run runs a shell command of one line in the guest and returns its output, trimmed. Its error is an exit code or a lost guest.
func (g *guest) run(command string) (string, error) {
	g.lastID++
	id := strconv.Itoa(g.lastID)
	if _, err := io.WriteString(g.conn, id+" "+command+"\n"); err != nil {
		return "", err
	}
	return g.reply(id, commandTime)
}

func (g *guest) reply(id string, limit time.Duration) (string, error) {
	if err := g.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	var output strings.Builder
	for {
		line, err := g.replies.ReadString('\n')
		if err != nil {
			return output.String(), fmt.Errorf("the guest does not end command %s within %v: %w", id, limit, err)
		}
		before, code, found := strings.Cut(line, "@@"+id+" ")
		output.WriteString(before)
		if !found {
			continue
		}
		if code = strings.TrimSpace(code); code != "0" {
			err = fmt.Errorf("exit code %s", code)
		}
		return strings.TrimSpace(output.String()), err
	}
}

func (g *guest) must(t *testing.T, command string) string {
	t.Helper()
	output, err := g.run(command)
	if err != nil {
		t.Fatalf("guest: %s: %v\n%s", command, err, output)
	}
	return output
}

// set writes values into the test driver, by file below its folder of the device.
func (g *guest) set(t *testing.T, device string, values map[string]int) {
	t.Helper()
	for file, value := range values {
		g.must(t, fmt.Sprintf("echo %d >/sys/kernel/debug/fakerdma/%s/%s", value, device, file))
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func logFile(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Log(err)
		return
	}
	t.Logf("%s:\n%s", filepath.Base(path), data)
}
