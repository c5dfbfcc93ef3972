package proc

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/pci"
)

// jobFiles is what is kept of a job's own files: NCCL settings, and the NUMA nodes and PCI addresses in topology files.
// Nothing else is returned, since the job chooses the file names.
type jobFiles struct {
	conf     map[string]string
	topology string
}

// readJobFiles reads NCCL's settings as initEnv does (src/misc/param.cc), and the topology file that they name, all
// with the permissions of the job. The error is that of an existing file that cannot be read.
func readJobFiles(root int, j job) (*jobFiles, error) {
	out, room := &jobFiles{conf: map[string]string{}}, settingsLength
	own := j.env["NCCL_CONF_FILE"]
	if own == "" {
		passwd, err := readBelow(root, "/etc/passwd", j.who)
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			return nil, err
		}
		// Users of a directory service are not in /etc/passwd.
		own = cmp.Or(homeOf(passwd, strconv.FormatUint(uint64(j.who.uid), 10)), j.home)
		if own == "" {
			return nil, syscall.ENOENT
		}
		own += "/.nccl.conf"
	}
	for _, name := range []string{own, "/etc/nccl.conf"} {
		b, err := readBelow(root, name, j.who)
		switch {
		case err == nil:
			if !addSettings(out.conf, &room, b) {
				return nil, syscall.EFBIG
			}
		case !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR):
			return nil, err
		}
	}
	name := cmp.Or(j.env["NCCL_TOPO_FILE"], out.conf["NCCL_TOPO_FILE"])
	if name == "" {
		return out, nil
	}
	b, err := readBelow(root, name, j.who)
	if errors.Is(err, syscall.ENOENT) { // NCCL continues without it
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.topology, err = ReducedTopology(b)
	return out, err
}

// rootOf opens the root directory of a process, a magic link that only the kernel can follow. In a copied tree it has
// to be inside.
func rootOf(t *rooted.Tree, pid int) (fd int, err error) {
	r, rel := t.At(fmt.Sprintf("proc/%d/root", pid))
	if !t.IsSysfs() {
		return r.Open(rel, unix.O_DIRECTORY)
	}
	err = r.Use(func(proc int) (err error) {
		fd, err = unix.Openat(proc, rel, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// readBelow reads a regular file below the root directory of a process, if the process may read it. Other files are not
// opened: opening a pipe blocks, and opening a device may have side effects.
func readBelow(root int, name string, who credentials) ([]byte, error) {
	rel, ok := strings.CutPrefix(name, "/")
	if !ok || rel == "" { // relative to the working directory of the process
		return nil, unix.EINVAL
	}
	seen, err := who.walk(root, rel)
	if err != nil {
		return nil, err
	}
	defer unix.Close(seen)
	if err := rooted.Ordinary(seen); err != nil {
		return nil, err
	}
	if err := who.may(seen, mayRead); err != nil {
		return nil, err
	}
	fd, err := unix.Open(pathOf(seen), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return rooted.Pread(fd, nil, true)
}

// homeOf returns the home directory of a user in /etc/passwd: NAME:x:UID:GID:…:HOME:SHELL.
func homeOf(passwd []byte, uid string) string {
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 7 && f[2] == uid && strings.HasPrefix(f[5], "/") {
			return f[5]
		}
	}
	return ""
}

// addSettings adds the settings of an nccl.conf that are not set yet: lines NAME=VALUE (setEnvFile, src/misc/param.cc).
// It reports whether all are within the limit.
func addSettings(to map[string]string, room *int, b []byte) (whole bool) {
	whole = true
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if ok && settingName().MatchString(name) {
			whole = addSetting(to, room, name, value) && whole
		}
	}
	return whole
}

// ReducedTopology reduces an NCCL topology file to the nested elements <system>, <cpu numaid> and <pci busid>.
func ReducedTopology(b []byte) (string, error) {
	var out strings.Builder
	var open []string // open elements; empty for omitted ones
	err := pci.TopologyElements(bytes.NewReader(b),
		func(e xml.StartElement) { open = append(open, element(&out, e)) }, func() {
			if name := open[len(open)-1]; name != "" {
				out.WriteString("</" + name + ">")
			}
			open = open[:len(open)-1]
		})
	if err != nil { // the error may quote the file
		return "", fmt.Errorf("%w: NCCL topology", access.ErrMalformed)
	}
	return out.String(), nil
}

// element writes the start tag of one of these elements, and returns its name.
func element(out *strings.Builder, e xml.StartElement) string {
	switch e.Name.Local {
	case "system":
		out.WriteString("<system>")
	case "cpu":
		numa, err := strconv.Atoi(pci.TopologyAttribute(e, "numaid"))
		if err != nil {
			numa = 0
		}
		fmt.Fprintf(out, `<cpu numaid="%d">`, numa)
	case "pci":
		address := strings.ToLower(pci.TopologyAttribute(e, "busid"))
		if !pci.IsAddress(address) {
			return ""
		}
		fmt.Fprintf(out, `<pci busid="%s">`, address)
	default:
		return ""
	}
	return e.Name.Local
}
