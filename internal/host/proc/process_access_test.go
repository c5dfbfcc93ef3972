package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
)

// ownCredentials returns the credentials of this process from its status file.
func ownCredentials(t *testing.T) credentials {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	c, ok := credentialsOf(status)
	if want := uint32(os.Getuid()); !ok || c.uid != want {
		t.Fatalf("%+v, user %d", c, want)
	}
	tr, err := rooted.Open(rooted.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	c.all = c.uid == 0 && readsAll(tr, os.Getpid(), status)
	return c
}

// opensAs reports whether the kernel opens a file for credentials, which only root can take. The thread that has them
// ends with its goroutine; the first thread of a process, which /proc/PID/status shows, does not end and is left alone.
func opensAs(c credentials, name string) error {
	answer := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			answer <- opensAs(c, name)
			runtime.UnlockOSThread()
			return
		}
		if os.Getuid() == 0 {
			for _, call := range [][3]uintptr{
				{unix.SYS_SETGROUPS, uintptr(len(c.groups)), uintptr(unsafe.Pointer(&c.groups[0]))},
				{unix.SYS_SETFSGID, uintptr(c.groups[0])},
				{unix.SYS_SETFSUID, uintptr(c.uid)},
			} {
				if _, _, err := unix.RawSyscall(call[0], call[1], call[2], 0); err != 0 && call[0] == unix.SYS_SETGROUPS {
					answer <- err
					return
				}
			}
		}
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		answer <- err
	}()
	return <-answer
}

// TestJobFilesAsTheJob compares with the kernel, for each place of the credentials (owner, group, supplementary group,
// other) and each mode of a file, of its directory and of that of a link to it. As root it takes the credentials of
// users; other users have their own only, for whom every file is one of the owner.
func TestJobFilesAsTheJob(t *testing.T) {
	const alice, bob, staff = 70001, 70002, 70100
	who := map[string]credentials{"this process": ownCredentials(t)}
	owner := [2]int{os.Getuid(), os.Getgid()}
	if os.Getuid() == 0 {
		owner = [2]int{alice, staff}
		who["owner"] = credentials{uid: alice, groups: []uint32{alice}}
		who["group"] = credentials{uid: bob, groups: []uint32{staff}}
		who["supplementary group"] = credentials{uid: bob, groups: []uint32{bob, 70200, staff}}
		who["other"] = credentials{uid: bob, groups: []uint32{bob}}
	}
	dir := t.TempDir()
	for d := dir; d != "/"; d = filepath.Dir(d) { // it is made for the user of the test only
		if info, err := os.Stat(d); err != nil || info.Mode()&0o001 == 0 {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	home, links := filepath.Join(dir, "home"), filepath.Join(dir, "links")
	file, link, winding := filepath.Join(home, "nccl.conf"), filepath.Join(links, "link"), home+"/../links/.//link"
	for _, err := range []error{
		os.Mkdir(home, 0o755), os.Mkdir(links, 0o755), os.WriteFile(file, []byte("NCCL_A=1\n"), 0o600),
		os.Symlink("../home/nccl.conf", link), os.Chown(file, owner[0], owner[1]), os.Chown(home, owner[0], owner[1]),
		os.Chown(links, owner[0], owner[1]),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = errors.Join(os.Chmod(home, 0o755), os.Chmod(links, 0o755)) })
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	opened, refused := 0, 0
	compare := func(what string) {
		t.Helper()
		for name, c := range who {
			for _, path := range []string{file, link, winding} {
				want := opensAs(c, path)
				b, err := readBelow(root, path, c)
				switch {
				case want == nil && err == nil && string(b) == "NCCL_A=1\n":
					opened++
				case want == unix.EACCES && b == nil && (errors.Is(err, errNotOfJob) || os.Getuid() != 0 && err == want):
					refused++
				default:
					t.Errorf("%s, %s, %s: %q, %v, and the kernel answers %v", what, name, path, b, err, want)
				}
			}
		}
	}
	modes := []os.FileMode{
		0, 0o400, 0o040, 0o004, 0o600, 0o640, 0o644, 0o444, 0o755, 0o711, 0o100, 0o010, 0o001, 0o700, 0o070, 0o007,
	}
	for _, changed := range []string{file, home, links} {
		for _, mode := range modes {
			for _, err := range []error{ // the directories first: a user other than root changes the file through them
				os.Chmod(home, 0o755), os.Chmod(links, 0o755), os.Chmod(file, 0o644), os.Chmod(changed, mode),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			compare(fmt.Sprintf("%s %#o", filepath.Base(changed), mode))
		}
	}
	if opened == 0 || refused == 0 {
		t.Errorf("%d opened, %d refused", opened, refused)
	}
}

// TestJobFilesWithAccessList: who else may read such a file is unknown. Its owner goes by the permission bits.
func TestJobFilesWithAccessList(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nccl.conf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Version 2, then tag, permissions and ID: owner rw, user 70002 none, group r, mask r, others r
	// (include/uapi/linux/posix_acl_xattr.h).
	list := binary.LittleEndian.AppendUint32(nil, 2)
	const nobody = ^uint32(0)
	for _, e := range [][3]uint32{{1, 6, nobody}, {2, 0, 70002}, {4, 4, nobody}, {16, 4, nobody}, {32, 4, nobody}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	fd, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	owner := credentials{uid: uint32(os.Getuid()), groups: []uint32{uint32(os.Getgid())}}
	named := credentials{uid: 70002, groups: []uint32{70002}}
	check := func(what string, want ...error) {
		t.Helper()
		if got := []error{owner.may(fd, mayRead), named.may(fd, mayRead)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("0600", nil, errNotOfJob)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	check("0644", nil, nil)
	if err := unix.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
		t.Fatalf("no access control lists in %s, set TMPDIR: %v", file, err)
	}
	check("0644 with a list", nil, errNotOfJob)
}

// TestCredentials: those of one user only, and of root with a capability in this user namespace every file.
func TestCredentials(t *testing.T) {
	const mixed = "Name:\tsudo\nUid:\t1001\t0\t0\t0\nGid:\t1001\t1001\t1001\t1001\n"
	for status, want := range map[string]*credentials{
		statusOf(1001): {uid: 1001, groups: []uint32{1001}},
		"Uid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t4 4294967294 \nCapEff:\t0000000000000000\n": {
			uid: 1, groups: []uint32{2, 4, 4294967294},
		},
		mixed: nil, "Uid:\t1\t1\t1\t1\nGid:\t1\t2\t2\t2\n": nil, "": nil,
		"Uid:\t1\t1\t1\t1\n": nil, "Gid:\t1\t1\t1\t1\n": nil,
		"Uid:\t-1\t-1\t-1\t-1\nGid:\t1\t1\t1\t1\n":              nil,
		"Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t4 x\n":    nil,
		"Uid:\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t4 \nUid:\t1": nil,
	} {
		c, ok := credentialsOf([]byte(status))
		if ok != (want != nil) || ok && !reflect.DeepEqual(c, *want) {
			t.Errorf("%q: %+v %v, want %+v", status, c, ok, want)
		}
	}
	p, table := NewProcessTree(t)
	const capable, incapable = "CapEff:\t0000000000000004\n", "CapEff:\t00000000a80425f9\n" // CAP_DAC_READ_SEARCH
	for pid, ns := range map[int]string{42: "user:[1]", 43: "user:[2]"} {
		p.Process(pid, nil, nil)
		namespaced(t, filepath.Join(p.Dir, "proc", fmt.Sprint(pid)), ns)
	}
	for name, c := range map[string]struct {
		pid    int
		status string
		self   bool
		want   bool
	}{
		"before it is known what this namespace is": {42, capable, false, false},
		"here":              {42, capable, true, true},
		"without":           {42, incapable, true, false},
		"another namespace": {43, capable, true, false},
		"no such line":      {42, "", true, false},
		"unknown namespace": {44, capable, true, false},
	} {
		self := filepath.Join(p.Dir, "proc", "self")
		if err := os.RemoveAll(filepath.Join(self, "ns")); err != nil {
			t.Fatal(err)
		}
		if c.self {
			namespaced(t, self, "user:[1]")
		}
		if got := readsAll(table.Tree, c.pid, []byte(c.status)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func namespaced(t *testing.T, dir, ns string) {
	t.Helper()
	dir = filepath.Join(dir, "ns")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink(ns, filepath.Join(dir, "user"))); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsOfAnotherUser: a job that names a file of another user gets nothing of it, and its settings are unknown:
// no permission of the exporter is missing. A set-user-ID program that the process executes has no settings either.
func TestSettingsOfAnotherUser(t *testing.T) {
	p, table := NewProcessTree(t)
	environ := "HOME=/home/bob\x00NCCL_CONF_FILE=/home/alice/secret.conf\x00"
	p.Process(42, []string{"/dev/nvidia3"}, map[string]string{
		"maps": ncclMaps, "stat": statText, "environ": environ, "status": statusOf(70002),
		"root/home/alice/secret.conf": "NCCL_SECRET=1\n",
	})
	secret := filepath.Join(p.Dir, "proc/42/root/home/alice/secret.conf")
	settings := func() (map[string]string, bool) {
		t.Helper()
		found, refused, err := table.Processes(t.Context(), nil, false)
		if len(found) != 1 || err != nil {
			t.Fatalf("%+v %v", found, err)
		}
		return found[0].Conf, refused
	}
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	if conf, refused := settings(); conf != nil || refused {
		t.Errorf("of another user: %v, refused: %v", conf, refused)
	}
	status := filepath.Join(p.Dir, "proc/42/status")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(status, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Uid:\t70002\t0\t0\t0\nGid:\t0\t0\t0\t0\n")
	if conf, refused := settings(); conf != nil || refused {
		t.Errorf("of a set-user-ID program: %v, refused: %v", conf, refused)
	}
	write(statusOf(os.Getuid()))
	if err := os.Symlink("/usr/bin/sudo", filepath.Join(p.Dir, "proc/42/exe")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(p.Dir, "proc/42/maps"), filepath.Join(p.Dir, "proc/42/maps of python")); err != nil {
		t.Fatal(err)
	}
	if found, _, err := table.Processes(t.Context(), nil, false); len(found) != 0 || err != nil {
		t.Errorf("of another program of this process: %+v %v", found, err)
	}
	if err := os.Rename(filepath.Join(p.Dir, "proc/42/maps of python"), filepath.Join(p.Dir, "proc/42/maps")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.Dir, "proc/42/exe")); err != nil {
		t.Fatal(err)
	}
	if conf, refused := settings(); !reflect.DeepEqual(conf, map[string]string{"NCCL_SECRET": "1"}) || refused {
		t.Errorf("of its owner: %v, refused: %v", conf, refused)
	}
}
