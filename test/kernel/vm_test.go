//go:build e2e

package kernel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
)

const (
	bootAttempts = 3
	bootTime     = 4 * time.Minute  // software emulation: 5 s on an idle machine
	beginTime    = 30 * time.Second // for a command to arrive
	commandTime  = 4 * time.Minute
	offTime      = 20 * time.Second
	shareMount   = "/mnt"
)

// guest is the running virtual machine.
type guest struct {
	url     string // of the guest's exporter, from here
	modules string // of the exporter that reads modules
	share   string // directory shared with the guest as shareMount
	conn    net.Conn
	replies *bufio.Reader
	lastID  int
}

// guestImages is the directory with the kernel and initramfs, built once for all tests.
var guestImages = sync.OnceValues(func() (dir string, err error) {
	for _, script := range []string{"./packages.sh", "./build.sh"} {
		var stderr bytes.Buffer
		cmd := exec.Command(script)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s%s", script, err, out, stderr.Bytes())
		}
		dir = strings.TrimSpace(string(out))
	}
	return dir, nil
})

// bootGuest starts a virtual machine with functions for the test driver, and waits until it accepts commands. A guest
// that fails to boot is replaced: while a kernel with two processors patches its own code (jump labels, eBPF programs:
// text_poke_bp), qemu's software emulation occasionally executes the breakpoint that another processor has just
// removed, and the kernel dies with "Oops: int3". A test that makes the kernel patch its code later needs a guest with
// one processor.
func bootGuest(t *testing.T, processors, functions int) *guest {
	t.Helper()
	images, err := guestImages()
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; ; attempt++ {
		g, err := bootOnce(t, images, processors, functions)
		if err == nil {
			return g
		}
		if attempt == bootAttempts {
			t.Fatalf("no guest after %d attempts: %v", attempt, err)
		}
		t.Logf("attempt %d: %v", attempt, err)
	}
}

// bootOnce makes one attempt to boot. The error has the output of qemu and the console.
func bootOnce(t *testing.T, images string, processors, functions int) (*guest, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e") // t.TempDir may be too long for a socket name
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	share := filepath.Join(dir, "share")
	if err := os.Mkdir(share, 0o755); err != nil {
		return nil, err
	}
	control := filepath.Join(dir, "control")
	listener, err := net.Listen("unix", control)
	if err != nil {
		return nil, err
	}
	defer listener.Close()

	console := filepath.Join(dir, "console")
	var qemuOutput bytes.Buffer
	// timeout: the machine must not outlive a killed test.
	qemu := exec.Command("timeout", append([]string{"1700", "qemu-system-x86_64"},
		qemuArgs(images, console, control, share, processors, functions)...)...)
	qemu.Stdout, qemu.Stderr = &qemuOutput, &qemuOutput
	if err := qemu.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		qemu.Wait()
		close(exited)
		listener.Close()
	}()
	end := func() {
		qemu.Process.Signal(syscall.SIGTERM)
		<-exited
	}

	g, err := connect(t, listener, qemu.Process.Pid, share)
	if err != nil {
		end()
		return nil, fmt.Errorf("%w\nqemu:\n%s%s", err, qemuOutput.Bytes(), content(console))
	}
	t.Cleanup(func() {
		end()
		if t.Failed() {
			t.Logf("qemu:\n%s%s", qemuOutput.Bytes(), content(console))
		}
	})
	t.Cleanup(func() {
		_ = g.begin("0", "poweroff -f") // a guest that is off does not answer
		select {
		case <-exited:
		case <-time.After(offTime):
			t.Error("the guest does not power off")
		}
	})
	return g, nil
}

// connect waits until the guest accepts commands.
func connect(t *testing.T, listener net.Listener, qemu int, share string) (*guest, error) {
	conn, err := listener.Accept()
	if err != nil {
		return nil, errors.New("qemu did not start")
	}
	forwarded, err := port.Await(t.Context(), qemu, 2)
	if err != nil {
		return nil, err
	}
	g := &guest{
		url: "http://" + forwarded[0], modules: "http://" + forwarded[1], share: share, conn: conn,
		replies: bufio.NewReader(conn),
	}
	_, err = g.reply("ready", bootTime)
	return g, err
}

// qemuArgs forwards a port of 127.0.0.1 to the guest's exporter and one of 127.0.0.2 to the one that reads modules. The
// kernel chooses both ports.
func qemuArgs(images, console, control, share string, processors, functions int) []string {
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", strconv.Itoa(processors), "-m", "1024",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(images, "vmlinuz"), "-initrd", filepath.Join(images, "initramfs"),
		"-append", "console=ttyS0 loglevel=5 panic=-1 mitigations=off",
		"-serial", "file:" + console,
		"-chardev", "socket,id=control,path=" + control, "-serial", "chardev:control",
		"-netdev", "user,id=net,hostfwd=tcp:127.0.0.1:0-:" + guestPort + ",hostfwd=tcp:127.0.0.2:0-:" + modulesPort,
		"-device", "virtio-net-pci,netdev=net,romfile=",
		"-virtfs", "local,path=" + share + ",mount_tag=share,security_model=none",
	}
	// Each behind a separate root port, for the test driver.
	for i := range functions {
		n := strconv.Itoa(i + 1)
		args = append(args,
			"-device", "pcie-root-port,id=port"+n+",chassis="+n+",x-speed=16,x-width=16",
			"-device", "e1000e,bus=port"+n+",romfile=")
	}
	return args
}

// run runs a shell command of one line in the guest and returns its output, trimmed. The error is an exit code or a
// lost guest.
func (g *guest) run(command string) (string, error) {
	g.lastID++
	id := strconv.Itoa(g.lastID)
	if err := g.begin(id, strings.TrimSpace(command)); err != nil {
		return "", err
	}
	return g.reply(id, commandTime)
}

// begin sends a command until the guest has received it completely: on a busy host the emulated serial port loses
// bytes. The guest runs it only once.
func (g *guest) begin(id, command string) error {
	var line string
	for range 8 {
		if _, err := fmt.Fprintf(g.conn, "\n%s %d %s\n", id, len(command), command); err != nil {
			return err
		}
		if err := g.conn.SetReadDeadline(time.Now().Add(beginTime)); err != nil {
			return err
		}
		for {
			part, err := g.replies.ReadString('\n')
			if line += part; errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return fmt.Errorf("the guest does not begin command %s: %w", id, err)
			}
			if strings.Contains(line, "@@begun "+id+"\n") {
				return nil
			}
			again := strings.Contains(line, "@@again")
			if line = ""; again {
				break
			}
		}
	}
	return fmt.Errorf("the guest does not begin command %s", id)
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

// set writes values into files of the test driver, in its directory of the device.
func (g *guest) set(t *testing.T, device string, values map[string]int) {
	t.Helper()
	for file, value := range values {
		g.must(t, fmt.Sprintf("echo %d >/sys/kernel/debug/fakerdma/%s/%s", value, device, file))
	}
}

// content returns the content of a file with its name, or the error.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s:\n%s", filepath.Base(path), data)
}
