//go:build e2e

package packages

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const release = "bookworm"

// tree is the file system of a clean Debian system.
type tree string

// makeTree creates one from this machine's apt mirror for the release, with the dependencies of the package.
func makeTree(t *testing.T, deb string) tree {
	t.Helper()
	dir, err := os.MkdirTemp("", "packages")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	r := tree(filepath.Join(dir, "debian"))
	if *ready != "" {
		command(t, "cp", "-a", *ready, string(r))
		return r
	}
	debs, err := filepath.Abs("../../bin/debs") // shared with test/container
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(debs, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "debootstrap", "--variant=minbase", "--cache-dir="+debs, release, string(r), mirror(t))
	r.run(t, "apt-get", "update")
	r.run(t, "apt-get", "satisfy", "-y", "--no-install-recommends",
		strings.TrimSpace(command(t, "dpkg-deb", "-f", deb, "Depends")))
	return r
}

func mirror(t *testing.T) string {
	t.Helper()
	out := command(t, "apt-get", "indextargets", "--format", "$(ORIGIN) $(RELEASE) $(COMPONENT) $(REPO_URI)",
		"Identifier: Packages")
	for line := range strings.Lines(out) {
		if uri, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian "+release+" main "); ok {
			return uri
		}
	}
	t.Fatalf("apt has no mirror of Debian %s: apt-get update, with it in /etc/apt/sources.list\n%s", release, out)
	return ""
}

// run runs a command in the tree, without systemd.
func (r tree) run(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "chroot", append([]string{string(r)}, args...)...)
}

// add copies a package into the tree.
func (r tree) add(t *testing.T, file string) string {
	t.Helper()
	name := "/var/cache/" + filepath.Base(file)
	if err := os.WriteFile(string(r)+name, []byte(read(t, file)), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func (r tree) has(name string) bool {
	_, err := os.Lstat(string(r) + name)
	return err == nil
}

// Directories that change without the package: data of dpkg and apt, logs, kernel file systems, locks and backups of
// the user databases.
var unrelated = []string{
	"/proc", "/sys", "/dev", "/run", "/tmp", "/var/cache", "/var/log", "/var/lib/dpkg", "/var/lib/apt",
	"/var/lib/systemd/timers", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock",
	"/etc/subuid-", "/etc/subgid-", "/root/.nccl.conf",
}

// files returns all others, with mode, owner and content, and dpkg's data about the exporter.
func (r tree) files(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(string(r), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, string(r))
		if slices.Contains(unrelated, name) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%s %s %d:%d", name, info.Mode(), owner.Uid, owner.Gid)
		switch {
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + to
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	known, err := exec.Command("sh", "-c",
		"cd '"+string(r)+"/var/lib/dpkg' && ls info | grep rdma; grep -h '^Package: rdma' status").Output()
	if len(known) > 0 {
		out = append(out, "dpkg knows "+string(known))
	} else if err == nil {
		t.Fatal("grep found an empty line")
	}
	return out
}

func (r tree) expectNoResidue(t *testing.T, before []string) {
	t.Helper()
	after := r.files(t)
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("purged, and there is: %s", line)
		}
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("purged, and it was before: %s", line)
		}
	}
}
