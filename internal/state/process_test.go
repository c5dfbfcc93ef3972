package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests run this binary again, as another process with a part to play.
const (
	roleVariable = "RDMA_EXPORTER_STATE_TEST_ROLE"
	dirVariable  = "RDMA_EXPORTER_STATE_TEST_DIR"
)

// roles are what another process does. It ends with the error's text on standard error.
var roles = map[string]func(dir, argument string) error{
	"write":      writeRole,
	"write-full": writeFullRole,
	"killed-at":  killedAtRole,
	"add":        addRole,
	"read-only":  readOnlyRole,
}

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(roleVariable), " ")
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Getenv(dirVariable), argument); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func process(t *testing.T, dir, role string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	return c
}

// writeRole writes forever and says which value is on the disk.
func writeRole(dir, _ string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if err := s.Write(valueOf(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// TestKilled: a process that is killed at any moment of its writes leaves a value that is whole and not older than what
// it said was on the disk.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		c := process(t, dir, "write")
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		lines, said := bufio.NewScanner(out), 0
		for range 1 + i%5 {
			if !lines.Scan() {
				t.Fatal("the writer has ended")
			}
		}
		for range i * 100 { // another moment of the write that follows
			runtime.Gosched()
		}
		must(t, c.Process.Kill())
		for {
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				said = n
			}
			if !lines.Scan() {
				break
			}
		}
		_ = c.Wait() // killed
		var v testValue
		if err := Read(t.Context(), dir, &v); err != nil || v != valueOf(v.N) || v.N < said {
			t.Fatalf("%d: read %d, %v, after %d was said to be written", i, v.N, err, said)
		}
		s := openStore(t, dir)
		if s.SetAside() != "" {
			t.Fatalf("%d: %s", i, s.SetAside())
		}
		must(t, s.Close())
		if _, err := os.Lstat(filepath.Join(dir, tempName)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%d: a temporary file stays: %v", i, err)
		}
	}
}

// killedAtRole kills itself before a step of its second write.
func killedAtRole(dir, step string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	if err := s.Write(valueOf(2)); err != nil {
		return err
	}
	s.step = func(now string) {
		if now == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return s.Write(valueOf(3))
}

func TestKilledAtEachStep(t *testing.T) {
	for step, want := range map[string]int{
		"create": 2, "write": 2, "sync": 2, "remove old": 2, "link": 2, "rename": 2, "sync directory": 3,
	} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			must(t, openStore(t, dir).Close())
			out, err := process(t, dir, "killed-at "+step).CombinedOutput()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("not killed: %v %s", err, out)
			}
			reads(t, dir, want)
			s := openStore(t, dir)
			reads(t, dir, want)
			must(t, s.Write(valueOf(4)))
			reads(t, dir, 4)
		})
	}
}

// writeFullRole writes a value that does not fit on what is left of the disk.
func writeFullRole(dir, _ string) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(dir)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: 1000}); err != nil {
		return err
	}
	return s.Write(valueOf(399))
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Write(valueOf(1)))
	must(t, s.Write(valueOf(2)))
	must(t, s.Close())
	out, err := process(t, dir, "write-full").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "write failed, keeping the previous value") ||
		!strings.Contains(string(out), "file too large") {
		t.Fatalf("%v: %s", err, out)
	}
	reads(t, dir, 2)
	if got := names(t, dir); !slices.Equal(got, []string{lockName, currentName, oldName}) {
		t.Errorf("%v", got)
	}
}

// addRole adds 1 to the stored value as often as requested, and waits for the lock.
func addRole(dir, times string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for n > 0 {
		s, err := Open(dir)
		if errors.Is(err, ErrLocked) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			return err
		}
		var v testValue
		if err := s.Read(&v); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := errors.Join(s.Write(valueOf(v.N+1)), s.Close()); err != nil {
			return err
		}
		n--
	}
	return nil
}

// TestTwoProcesses: of two that write in turn none loses what the other wrote, while a third reads.
func TestTwoProcesses(t *testing.T) {
	const times = 25
	dir := t.TempDir()
	ended := make(chan error, 2)
	for range 2 {
		c := process(t, dir, fmt.Sprintf("add %d", times))
		errs, err := c.StderrPipe()
		must(t, err)
		must(t, c.Start())
		go func() {
			text, _ := io.ReadAll(errs)
			err := c.Wait()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, text)
			}
			ended <- err
		}()
	}
	for left := 2; left > 0; {
		select {
		case err := <-ended:
			must(t, err)
			left--
		default:
			var v testValue
			if err := Read(t.Context(), dir, &v); err != nil && !errors.Is(err, fs.ErrNotExist) || v != valueOf(v.N) {
				t.Fatalf("%d, %v", v.N, err)
			}
		}
	}
	reads(t, dir, 2*times)
}

// noUsers is what a user namespace says that has root alone.
const noUsers = "no other user here"

// readOnlyRole is an ordinary user whose directory becomes read-only between two writes.
func readOnlyRole(dir, _ string) error {
	if os.Getuid() == 0 { // modes do not bind root
		const nobody = 65534
		err := os.Chown(dir, nobody, nobody)
		if errors.Is(err, syscall.EINVAL) {
			fmt.Println(noUsers)
			return nil
		}
		if err := errors.Join(err, os.Chdir(dir), syscall.Setgroups(nil), syscall.Setgid(nobody),
			syscall.Setuid(nobody)); err != nil {
			return err
		}
		dir = "." // of which those above let no one in
	}
	s, err := Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Write(valueOf(1)), os.Chmod(dir, 0o550)); err != nil {
		return err
	}
	fmt.Println(s.Write(valueOf(2)))
	var v testValue
	if err := s.Read(&v); err != nil || v != valueOf(1) {
		return fmt.Errorf("read %d, %w", v.N, err)
	}
	if err := errors.Join(s.Close(), os.Chmod(dir, 0o750), os.Remove(s.path(lockName)), os.Chmod(dir, 0o550)); err != nil {
		return err
	}
	_, err = Open(dir)
	fmt.Println(err)
	return os.Chmod(dir, 0o750)
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	out, err := process(t, dir, "read-only").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.HasPrefix(string(out), noUsers) {
		t.Skip(noUsers)
	}
	for _, want := range []string{
		": write failed, keeping the previous value: open ", "state.v1.json.tmp: permission denied\n",
		": cannot lock it: permission denied: it must be writable for the user of the program\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s, want %s", out, want)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{currentName}) {
		t.Errorf("%v", got)
	}
}
