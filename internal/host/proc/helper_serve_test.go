package proc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/snapshot/accel"
)

// listenOn listens on a Unix socket.
func listenOn(t testing.TB, name string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// help runs a helper for a tree until stop is called, and collects the rejected requests.
func help(t *testing.T, dir, name string) (stop func() (rejected []error)) {
	t.Helper()
	return helpOn(t, dir, listenOn(t, name))
}

func helpOn(t testing.TB, dir string, l *net.UnixListener, adjust ...func(*Helper)) (stop func() (rejected []error)) {
	t.Helper()
	h, err := OpenHelper(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range adjust {
		change(h)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, said := make(chan error), make(chan error, 100)
	go func() { done <- h.Serve(ctx, l, func(err error) { said <- err }) }()
	return func() (rejected []error) {
		cancel()
		if err := errors.Join(<-done, h.Close()); err != nil {
			t.Error(err)
		}
		close(said)
		for err := range said {
			rejected = append(rejected, err)
		}
		return rejected
	}
}

// BenchmarkProcesses reads the processes of this machine, itself and by a helper.
func BenchmarkProcesses(b *testing.B) {
	name := filepath.Join(b.TempDir(), "helper.sock")
	stop := helpOn(b, "/", listenOn(b, name))
	defer stop()
	for what, paths := range map[string]rooted.Paths{"direct": {RootFS: "/"}, "helper": {RootFS: "/", Helper: name}} {
		b.Run(what, func(b *testing.B) {
			l, err := openReader(paths)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			for b.Loop() {
				if _, _, err := l.Processes.Processes(b.Context(), nil, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const (
	vpdFunction = "sys/devices/pci0000:00/0000:15:00.0"
	vpdContent  = "\x82\x02\x00CX\x00\xff\x78"
)

// helped returns a tree with processes and vital product data, and a host that reads it by a helper at a socket.
func helped(t *testing.T) (dir, name string, direct, byHelper *reader) {
	t.Helper()
	dir, _ = hosttest.Machine(t)
	direct, err := openReader(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close() })
	p := processTree{t, dir}
	p.Process(42, []string{"/dev/nvidia3", "/dev/infiniband/uverbs0"}, map[string]string{
		"maps": ncclMaps, "limits": limitsText, "stat": "42 (py\xffthon) S" + strings.Repeat(" 1", 20),
		"cgroup":  "0::/system.slice/slurmstepd.scope/job_77/step_0\n",
		"environ": "NCCL_IB_HCA=mlx5\x00NCCL_DEBUG_FILE=/tmp/\xff\xfe%h\x00NCCL_TOPO_FILE=/t.xml\x00WORLD_SIZE=16\x00SECRET=1\x00",
		"status":  statusOf(0), "root/etc/nccl.conf": "NCCL_IB_TC=106\nTOKEN=1\n", "root/etc/passwd": passwdText,
		"root/t.xml": `<system><cpu numaid="1"><pci busid="0000:15:00.0"/></cpu></system>`,
	})
	p.Process(43, []string{"/dev/infiniband/uverbs1"}, map[string]string{"stat": "43 (ib_write_bw) S"})
	restrict(t, dir, 0o660)
	hosttest.Put(t, dir, vpdFunction+vpdFile, vpdContent)
	hosttest.Put(t, dir, host.BufinfoFile, "Dma-buf Objects:\n")
	hosttest.Symlink(t, "../../../devices/pci0000:00/0000:15:00.0", dir, "sys/bus/pci/devices/0000:15:00.0")
	name = filepath.Join(t.TempDir(), "helper.sock")
	byHelper, err = openReader(rooted.Paths{RootFS: dir, Helper: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = byHelper.Close() })
	return dir, name, direct, byHelper
}

// unhurried makes every scan complete, on a machine of any speed.
func unhurried(p *processTable) {
	start := time.Now()
	p.now, p.jobs.timeout = func() time.Time { return start }, time.Hour
}

// TestHelper: what the helper reads is what this process reads itself.
func TestHelper(t *testing.T) {
	dir, name, direct, byHelper := helped(t)
	stop := helpOn(t, dir, listenOn(t, name), func(h *Helper) { h.limit = time.Hour; unhurried(h.table) })
	unhurried(direct.Processes.(*processTable))
	client := helperClient{Socket: name, Tree: byHelper.tree, Limit: time.Hour}
	byHelper.Files, byHelper.Processes = helperFiles{byHelper.tree, client}, client
	processes := func(l *reader, first []int, only bool) []accel.Process {
		t.Helper()
		found, refused, err := l.Processes.Processes(t.Context(), first, only)
		if err != nil || refused {
			t.Fatal(found, refused, err)
		}
		return found
	}
	many := make([]int, helperNamed+1) // none is visible, so that all processes are checked
	for i := range many {
		many[i] = 1000 + i
	}
	for _, c := range []struct {
		first []int
		only  bool
		found int
	}{{nil, false, 2}, {[]int{43}, true, 1}, {many, true, 2}} {
		want, got := processes(direct, c.first, c.only), processes(byHelper, c.first, c.only)
		if len(got) != c.found || got[0].MayOpen == nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	for file, want := range map[string]string{
		vpdFunction + vpdFile: vpdContent, "proc/42/cgroup": hosttest.Content(t, direct.Files, "proc/42/cgroup"),
	} {
		if got := hosttest.Content(t, byHelper.Files, file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	if b, whole, err := byHelper.Files.Head(host.BufinfoFile, host.BufinfoSize); string(b) != "Dma-buf Objects:\n" ||
		!whole || err != nil {
		t.Errorf("%q %v %v", b, whole, err)
	}
	if _, err := byHelper.Files.Read("sys/devices/pci0000:00/0000:16:00.0/vpd", nil); !access.IsAbsent(err) {
		t.Errorf("vital product data of a function without: %v", err)
	}
	if rejected := stop(); rejected != nil {
		t.Error(rejected)
	}
}

// TestHelperMissing: without the helper its sources are not permitted, with the unit as remedy; they are read once it
// is back.
func TestHelperMissing(t *testing.T) {
	dir, name, _, byHelper := helped(t)
	request := func() (err error) {
		_, _, err = byHelper.Processes.Processes(t.Context(), nil, false)
		_, failed := byHelper.Files.Read(vpdFunction+vpdFile, nil)
		if (err == nil) != (failed == nil) {
			t.Errorf("processes: %v, vital product data: %v", err, failed)
		}
		return err
	}
	missing := func(what string) {
		t.Helper()
		err := request()
		if access.ReasonOf(err) != access.Permission || !errors.Is(err, access.ErrNoHelper) ||
			!strings.Contains(source.Processes.NeedsAfter(err), "rdma_exporter-helper.service") ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, needs %s", what, err, source.Processes.NeedsAfter(err))
		}
	}
	missing("no socket")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing("no process at the socket")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stop := help(t, dir, name)
		if err := request(); err != nil {
			t.Error(err)
		}
		stop()
		missing("stopped")
	}
}

// TestHostileHelper: no answer is believed that does not have the form of one from the live reader, and none is waited
// for.
func TestHostileHelper(t *testing.T) {
	process := func(field string) string { return `{"processes":[{"PID":1,` + field + `}]}` }
	for _, c := range []struct{ name, answer string }{
		{"nothing", ""},
		{"no JSON", "GET / HTTP/1.1\r\n"},
		{"two answers", "{}{}"},
		{"unknown field", `{"path":"/etc/shadow"}`},
		{"another type", `{"processes":{"PID":1}}`},
		{"negative errno", `{"errno":-1}`},
		{"errno that does not exist", `{"errno":123456}`},
		{"deep", strings.Repeat("[", helperAnswerSize/2)},
		{"too large", strings.Repeat(" ", helperAnswerSize+1)},
		{"no PID", `{"processes":[{}]}`},
		{"the same process twice", `{"processes":[{"PID":1},{"PID":1}]}`},
		{"GPU without a number", process(`"GPUs":[-1]`)},
		{"device that is a path", process(`"Verbs":["uverbs0/../x"]`)},
		{"command with a control character", process(`"Command":"\u001b[2J"`)},
		{"long command", process(`"Command":"` + strings.Repeat("x", commandLength+1) + `"`)},
		{"version", process(`"NCCL":"<script>"`)},
		{"job", process(`"Job":"slurm/1 x"`)},
		{"variable that is none of NCCL", process(`"Env":{"AWS_SECRET":"x"}`)},
		{"variable of a scheduler in a file", process(`"Conf":{"WORLD_SIZE":"1"}`)},
		{"long setting", process(`"Conf":{"NCCL_A":"` + strings.Repeat("x", settingLength) + `"}`)},
		{"topology with more than places", process(`"Topology":"<system><gpu dev=\"0\"></gpu></system>"`)},
		{"topology that is a tower", process(`"Topology":"` + strings.Repeat("<pci>", 1000) + `"`)},
		{"memory, which RDMA netlink reports", process(`"Regions":1`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, name, _, byHelper := helped(t)
			l := listenOn(t, name)
			go func() {
				for {
					conn, err := l.AcceptUnix()
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, conn)
					_, _ = io.WriteString(conn, c.answer)
					_ = conn.Close()
				}
			}()
			found, refused, err := byHelper.Processes.Processes(t.Context(), nil, false)
			if found != nil || refused || err == nil || strings.Contains(err.Error(), "script") {
				t.Errorf("%+v %v %v", found, refused, err)
			}
		})
	}
	t.Run("large file", func(t *testing.T) {
		_, name, _, byHelper := helped(t)
		l := listenOn(t, name)
		go func() {
			if conn, err := l.AcceptUnix(); err == nil {
				_, _ = io.Copy(io.Discard, conn)
				_ = json.NewEncoder(conn).Encode(helperAnswer{Content: make([]byte, vpdSize+1)})
				_ = conn.Close()
			}
		}()
		if b, err := byHelper.Files.Read(vpdFunction+vpdFile, nil); len(b) != 0 || !errors.Is(err, access.ErrMalformed) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
	t.Run("silence", func(t *testing.T) {
		_, name, _, byHelper := helped(t)
		listenOn(t, name) // accepted by the kernel, never answered
		ctx := endlessUntil{t.Context(), time.Now().Add(500 * time.Millisecond)}
		_, _, err := byHelper.Processes.Processes(ctx, nil, false)
		if access.ReasonOf(err) != access.Late || !strings.Contains(err.Error(), name) {
			t.Error(err)
		}
	})
}

// endlessUntil is a context that never ends: what has to answer before its deadline cannot wait for it.
type endlessUntil struct {
	context.Context
	deadline time.Time
}

func (e endlessUntil) Deadline() (time.Time, bool) { return e.deadline, true }

// TestHostileRequests: a request reads nothing but the three sources, and a client that does nothing occupies one
// connection.
func TestHostileRequests(t *testing.T) {
	dir, name, _, byHelper := helped(t)
	stop := help(t, dir, name)
	idle, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for _, c := range []struct {
		request string
		want    syscall.Errno // 0: rejected without an answer
	}{
		{"", 0},
		{"x", 0},
		{`{"read":"vpd","path":"/etc/shadow"}`, 0},
		{`{"read":"processes","first":["1"]}`, 0},
		{`{"read":"processes"}{"read":"processes"}`, 0},
		{strings.Repeat(" ", helperRequestSize+1), 0},
		{`{}`, syscall.EINVAL},
		{`{"read":"/etc/shadow"}`, syscall.EINVAL},
		{`{"read":"pci_config","function":"0000:15:00.0"}`, syscall.EINVAL},
		{`{"read":"vpd"}`, syscall.EINVAL},
		{`{"read":"vpd","function":"../../../../proc/1/environ"}`, syscall.EINVAL},
		{`{"read":"vpd","function":"0000:15:00.0/../0000:15:00.0"}`, syscall.EINVAL},
		{`{"read":"vpd","function":"0000:15:00.0\u0000"}`, syscall.EINVAL},
		{`{"read":"vpd","function":"0000:16:00.0"}`, syscall.ENOENT},
	} {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, c.request) // the helper may have closed it
		_ = conn.CloseWrite()
		var got helperAnswer
		err = receiveJSON(conn, helperAnswerSize, &got)
		if (err != nil) != (c.want == 0) || got.Errno != c.want || got.Content != nil || got.Processes != nil {
			t.Errorf("%.80s: %+v %v", c.request, got, err)
		}
		_ = conn.Close()
	}
	if _, _, err := byHelper.Processes.Processes(t.Context(), nil, false); err != nil {
		t.Error(err)
	}
	if rejected := stop(); len(rejected) < 6 { // and the idle client
		t.Errorf("%d rejected: %v", len(rejected), rejected)
	}
}

// TestHelperPeer: the owner of the socket and root are answered, other users are not, whatever the mode of the socket
// is.
func TestHelperPeer(t *testing.T) {
	uid, isRoot := os.Getuid(), os.Getuid() == 0
	if isRoot {
		uid = 1234
	}
	for _, c := range []struct {
		name          string
		owner, client int
		answered      bool
	}{
		{"owner", uid, uid, true},
		{"root", uid, 0, true},
		{"another user", uid + 1, uid, false},
	} {
		if !isRoot && (c.client != uid || c.owner != uid) {
			continue // make e2e runs as root
		}
		dir, name, _, byHelper := helped(t)
		listening := listenOn(t, name)
		for _, err := range []error{
			os.Chmod(name, 0o666), os.Chown(name, c.owner, -1), os.Chmod(filepath.Dir(name), 0o777),
			os.Chmod(filepath.Dir(filepath.Dir(name)), 0o777),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		stop := helpOn(t, dir, listening)
		var err error
		as(t, c.client, func() { _, _, err = byHelper.Processes.Processes(t.Context(), nil, false) })
		rejected := stop()
		if (err == nil) != c.answered || (len(rejected) == 0) != c.answered {
			t.Errorf("%s: %v, rejected: %v", c.name, err, rejected)
		}
		if !c.answered && (!errors.Is(err, access.ErrNoHelper) || !errors.Is(rejected[0], syscall.EACCES)) {
			t.Errorf("%s: %v, rejected: %v", c.name, err, rejected)
		}
	}
}

// as runs f in a thread of another user. The thread ends with it.
func as(t *testing.T, uid int, f func()) {
	t.Helper()
	if err := inThread(uid, f); err != nil {
		t.Fatal(err)
	}
}

// inThread runs f in a thread with an effective user of its own. The first thread of the process, whose user
// /proc/PID/status shows, does not end and is left alone.
func inThread(uid int, f func()) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // unlocked only in the first thread
		if unix.Gettid() == os.Getpid() {
			done <- inThread(uid, f)
			runtime.UnlockOSThread()
			return
		}
		if uid != os.Getuid() {
			// Of this thread only.
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
				done <- e
				return
			}
		}
		f()
		done <- nil
	}()
	return <-done
}

// reader reads the files and processes of a tree, itself or by a helper.
type reader struct {
	host.Files
	Processes host.Processes
	tree      *rooted.Tree
}

func openReader(p rooted.Paths) (*reader, error) {
	t, err := rooted.Open(p)
	if err != nil {
		return nil, err
	}
	r := &reader{Files: t, Processes: NewProcessTable(t, p.JobNames), tree: t}
	if p.Helper != "" {
		r.Files, r.Processes = ByHelper(t, p)
	}
	return r, nil
}

func (r *reader) Close() error { return r.tree.Close() }
