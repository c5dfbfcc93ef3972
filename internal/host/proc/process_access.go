package proc

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
)

// errNotOfJob: the permissions of a file, or of a directory on the way to it, do not let the job read it, or it is
// unknown whether they do. It is no lack of a permission of this program.
var errNotOfJob = errors.New("not readable by the job")

// credentials are those that the kernel compares with the permissions of a file (path_resolution(7)).
type credentials struct {
	uid    uint32
	groups []uint32 // with that of the process
	all    bool     // reads every file: root with CAP_DAC_OVERRIDE or CAP_DAC_READ_SEARCH
}

// credentialsOf returns the credentials in /proc/PID/status. ok is false if the process has two users or groups, as a
// set-user-ID program has: its environment belongs to one of them, and it may read the files of the other.
func credentialsOf(status []byte) (c credentials, ok bool) {
	uid, okUser := oneID(rooted.StatusField(status, "Uid"))
	gid, okGroup := oneID(rooted.StatusField(status, "Gid"))
	c = credentials{uid: uid, groups: []uint32{gid}}
	for text := range strings.FieldsSeq(rooted.StatusField(status, "Groups")) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return c, false
		}
		c.groups = append(c.groups, uint32(id))
	}
	return c, okUser && okGroup
}

// oneID returns the ID if real, effective, saved and file system ID are the same.
func oneID(field string) (uint32, bool) {
	all := strings.Fields(field)
	if len(all) != 4 || slices.ContainsFunc(all, func(s string) bool { return s != all[0] }) {
		return 0, false
	}
	id, err := strconv.ParseUint(all[0], 10, 32)
	return uint32(id), err == nil
}

// readsAll reports whether root in the user namespace of this program has a capability to read every file. Those of
// other namespaces do not apply to files of users that these do not have.
func readsAll(t *rooted.Tree, pid int, status []byte) bool {
	const capabilities = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	has, err := strconv.ParseUint(rooted.StatusField(status, "CapEff"), 16, 64)
	if err != nil || has&capabilities == 0 {
		return false
	}
	own, err := t.Link("proc/self/ns/user")
	if err != nil {
		return false
	}
	its, err := t.Link("proc/" + strconv.Itoa(pid) + "/ns/user")
	return err == nil && its == own
}

// Permission bits of others; those of the group and of the owner are to the left.
const (
	maySearch = 1
	mayRead   = 4
)

// may returns errNotOfJob if the credentials do not have a permission on an open file, which may be an O_PATH one. An
// access control list is not evaluated: only its owner is certain to have what the permission bits say (acl(5)).
func (c credentials) may(fd int, want uint32) error {
	if c.all {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	mode, owner := st.Mode, st.Uid == c.uid
	switch {
	case owner:
		mode >>= 6
	case slices.Contains(c.groups, st.Gid):
		mode >>= 3
	}
	if mode&want == 0 {
		return errNotOfJob
	}
	if owner {
		return nil
	}
	switch _, err := unix.Getxattr(pathOf(fd), "system.posix_acl_access", nil); err {
	case unix.ENODATA, unix.EOPNOTSUPP:
		return nil
	case nil:
		return errNotOfJob
	default:
		return err
	}
}

// pathOf returns the file of a descriptor, for calls that refuse an O_PATH one.
func pathOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Limits of a path: of links as in the kernel (MAXSYMLINKS), of its length (PATH_MAX), and of the names in it.
const (
	maxLinks = 40
	maxPath  = 4096
	maxNames = 1024
)

// walk opens a file below the root directory of a process (O_PATH), as the process could: name by name, with the
// permission to search each directory on the way. Each check is of the directory that is open, so that what is renamed
// meanwhile is checked too.
func (c credentials) walk(root int, name string) (fd int, err error) {
	dir, above := root, []string(nil) // the open directory, and the names on the way to it, none a link
	begin := func() {
		if dir != root {
			unix.Close(dir)
		}
		dir, above = root, nil
	}
	defer begin()
	links := 0
	for range maxNames {
		next, rest, more := strings.Cut(strings.TrimLeft(name, "/"), "/")
		if next == "" || len(name) > maxPath {
			return -1, unix.EINVAL // a directory, or no path
		}
		if err := c.may(dir, maySearch); err != nil {
			return -1, err
		}
		switch next {
		case ".":
			name = rest
			continue
		case "..":
			name = strings.Join(append(above[:max(0, len(above)-1)], rest), "/")
			begin()
			continue
		}
		if more {
			fd, err := unix.Openat(dir, next, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err == nil {
				names := append(above, next)
				begin()
				dir, above, name = fd, names, rest
				continue
			}
			if err != unix.ENOTDIR {
				return -1, err
			}
		}
		fd, err := unix.Openat(dir, next, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		target, isLink, err := linkOf(fd)
		if !isLink && !more && err == nil {
			return fd, nil
		}
		unix.Close(fd)
		links++
		switch {
		case err != nil:
			return -1, err
		case !isLink:
			return -1, unix.ENOTDIR
		case links > maxLinks:
			return -1, unix.ELOOP
		}
		if strings.HasPrefix(target, "/") {
			begin()
		}
		if name = target; more {
			name += "/" + rest
		}
	}
	return -1, unix.ELOOP
}

// linkOf returns the target of a symbolic link that is open. Following the kernel's own links (/proc/PID/root) is
// refused, since their text is not their target.
func linkOf(fd int) (target string, isLink bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", false, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", true, err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return "", true, unix.ELOOP
	}
	buf := make([]byte, maxPath)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(0, n)]), true, err
}
