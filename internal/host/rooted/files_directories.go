package rooted

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
)

// relistInterval is how long a change in an unmodified directory of sysfs may go unnoticed.
const relistInterval = 30 * time.Second

// directory is a directory as of the last List, with the descriptors of its files.
type directory struct {
	id     dirID
	names  []string
	listed time.Time
	files  map[string]*openFile // by name; "." is the directory itself
	state  []uint64             // of itself and of its entries, as of the last Same; nil: unknown
	each   fileSet              // of the last ReadEach, if all were open
}

// fileSet is open files of a directory. Looking each up by its name costs a twentieth of reading it.
type fileSet struct {
	names []string
	files []*openFile
}

// dirID identifies a directory and its state: it differs if the directory was replaced or its entries changed.
type dirID struct {
	dev, ino  uint64
	sec, nsec int64
}

// Attributes costs no system call until relistInterval has passed or Identity has found another device.
func (t *Tree) Attributes(p string) ([]string, error) {
	t.mu.Lock()
	d := t.dirs[p]
	fresh := d != nil && time.Since(d.listed) < relistInterval
	t.mu.Unlock()
	if fresh {
		return d.names, nil
	}
	return t.List(p)
}

// List costs five system calls.
func (t *Tree) List(p string) ([]string, error) {
	fd, err := t.Open(p, unix.O_DIRECTORY)
	if err != nil {
		t.leave(p)
		return nil, &access.Error{Op: "list", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &access.Error{Op: "list", Path: p, Err: err}
	}
	names, err := readNames(fd)
	if err != nil {
		return nil, &access.Error{Op: "list", Path: p, Err: err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.dirs[p]
	if d != nil && d.id == idOf(&st) && slices.Equal(d.names, names) {
		d.listed = time.Now()
		return d.names, nil
	}
	t.leaveLocked(p)
	t.dirs[p] = &directory{id: idOf(&st), names: names, listed: time.Now(), files: map[string]*openFile{}}
	return names, nil
}

// Same costs a system call for the directory and one for each entry, as long as the directory is open. The kernel
// does not change the time of a directory of sysfs when its entries change, but the number of its links.
func (t *Tree) Same(p string) bool {
	t.mu.Lock()
	d := t.dirs[p]
	t.mu.Unlock()
	if d == nil {
		return false
	}
	f, err := t.acquire(p, ".")
	if err != nil {
		return false
	}
	defer t.release(f)
	var few [16]uint64
	now, err := stateOf(f.fd, d.names, few[:0])
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && slices.Equal(now, d.state) {
		return true
	}
	d.state = nil
	if err == nil {
		d.state = slices.Clone(now)
	}
	return false
}

// stateOf appends what changes with a directory and with its entries.
func stateOf(fd int, names []string, state []uint64) ([]uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	state = append(state, st.Ino, uint64(st.Nlink), uint64(st.Mtim.Sec), uint64(st.Mtim.Nsec))
	for _, name := range names {
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return nil, err
		}
		state = append(state, st.Ino)
	}
	return state, nil
}

// Identity costs one system call. The kernel follows links here, also to the outside, which only changes the number.
func (t *Tree) Identity(p string) (uint64, error) {
	if !access.Clean(p) {
		return 0, &access.Error{Op: "stat", Path: p, Err: syscall.EINVAL}
	}
	r, rel := t.At(p)
	var st unix.Stat_t
	err := r.Use(func(fd int) error { return unix.Fstatat(fd, rel, &st, 0) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.inodes[p]; known != 0 && known != st.Ino { // removed or replaced
		t.leaveBelowLocked(p)
	}
	if err != nil {
		delete(t.inodes, p)
		return 0, &access.Error{Op: "stat", Path: p, Err: err}
	}
	t.inodes[p] = st.Ino
	return st.Ino, nil
}

// linkedDirs are the links in a directory.
type linkedDirs struct {
	id      dirID  // of the directory; for file systems other than sysfs, which reuse inodes
	entries []byte // of getdents64(2): among others names and inodes
	names   []string
	ids     []uint64 // of the directories that they lead to
}

// Identities costs five system calls while the entries are the same.
func (t *Tree) Identities(p string) ([]string, []uint64, error) {
	var few [2048]byte
	id, entries, err := t.entries(p, few[:0])
	if err != nil {
		return nil, nil, &access.Error{Op: "list", Path: p, Err: err}
	}
	t.mu.Lock()
	last := t.linked[p]
	t.mu.Unlock()
	if last.id == id && bytes.Equal(last.entries, entries) {
		return last.names, last.ids, nil
	}
	now, whole := linkedDirs{id: id, entries: bytes.Clone(entries)}, true
	_, _, now.names = unix.ParseDirent(entries, -1, nil)
	slices.Sort(now.names)
	for _, name := range now.names {
		id, err := t.Identity(p + "/" + name)
		now.ids, whole = append(now.ids, id), whole && err == nil
	}
	if whole {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.linked[p] = now
	}
	return now.names, now.ids, nil
}

// entries identifies a directory, and appends its entries as getdents64(2) returns them.
func (t *Tree) entries(p string, buf []byte) (dirID, []byte, error) {
	if !access.Clean(p) {
		return dirID{}, nil, syscall.EINVAL
	}
	r, rel := t.At(p)
	fd, err := r.Open(rel, unix.O_DIRECTORY)
	if err != nil {
		return dirID{}, nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return dirID{}, nil, err
	}
	for {
		buf = slices.Grow(buf, 512) // an entry has at most 280 bytes
		n, err := readEntries(fd, buf[len(buf):cap(buf)])
		if err != nil {
			return dirID{}, nil, err
		}
		if n == 0 {
			return idOf(&st), buf, nil
		}
		buf = buf[:len(buf)+n]
	}
}

func idOf(st *unix.Stat_t) dirID { return dirID{st.Dev, st.Ino, st.Mtim.Sec, st.Mtim.Nsec} }

func (t *Tree) leave(p string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked(p)
}

func (t *Tree) leaveLocked(p string) {
	d := t.dirs[p]
	if d == nil {
		return
	}
	delete(t.dirs, p)
	for _, f := range d.files {
		t.unref(f)
		t.kept--
	}
}

// leaveBelowLocked discards a directory and everything below it.
func (t *Tree) leaveBelowLocked(p string) {
	for below := range t.dirs {
		if below == p || strings.HasPrefix(below, p+"/") {
			t.leaveLocked(below)
		}
	}
}

// readEntries reads the next entries of a directory (getdents64(2)); 0: there are no more.
func readEntries(fd int, buf []byte) (n int, err error) {
	for {
		if n, err = unix.ReadDirent(fd, buf); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func readNames(fd int) ([]string, error) {
	names, _, err := SomeNames(fd, math.MaxInt)
	return names, err
}

// SomeNames reads at most limit names. whole is false if there are more.
func SomeNames(fd, limit int) (names []string, whole bool, err error) {
	buf := make([]byte, 8192)
	for len(names) <= limit {
		n, err := readEntries(fd, buf)
		if err != nil {
			return nil, false, err
		}
		if n == 0 {
			slices.Sort(names)
			return names, true, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	return names[:limit], false, nil
}
