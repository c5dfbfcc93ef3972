package proc

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// TestJobFiles: the settings in a job's files by precedence, and nothing else of the files.
func TestJobFiles(t *testing.T) {
	const topology = `<system version="1"><cpu host_hash="0x1" numaid="1" arch="x86_64"><pci busid="0000:15:00.0" class="0x060400"><nic><net name="mlx5_0" guid="0x9c63"/></nic></pci></cpu></system>`
	const reduced = `<system><cpu numaid="1"><pci busid="0000:15:00.0"></pci></cpu></system>`
	for _, c := range []struct {
		name           string
		files          map[string]string
		env            map[string]string
		uid            uint32
		home           string
		conf, topology string
		err            error
	}{
		{"none", nil, nil, 0, "/root", "", "", nil},
		{"home of the user, above that of the machine", map[string]string{"etc/passwd": passwdText, "home/ann/.nccl.conf": "NCCL_A=1\n", "etc/nccl.conf": "NCCL_A=2\nNCCL_B=3\r\n"}, nil, 1001, "/elsewhere", "NCCL_A=1 NCCL_B=3", "", nil},
		{"a user of a directory service", map[string]string{"etc/passwd": passwdText, "home/bob/.nccl.conf": "NCCL_A=1\n"}, nil, 70001, "/home/bob", "NCCL_A=1", "", nil},
		{"one without a home", map[string]string{"etc/passwd": passwdText}, nil, 70001, "", "", "", syscall.ENOENT},
		{"a file that the job names, in place of that at home", map[string]string{"etc/passwd": passwdText, "home/ann/.nccl.conf": "NCCL_A=1\n", "opt/c": "NCCL_B=2\n"}, map[string]string{"NCCL_CONF_FILE": "/opt/c"}, 1001, "", "NCCL_B=2", "", nil},
		{"one that is no file of settings", map[string]string{"etc/shadow": "root:$6$x=y:1:\nnccl=1\nNCCL_=1\nNCCL_lower=1\n# NCCL_A=1\n"}, map[string]string{"NCCL_CONF_FILE": "/etc/shadow"}, 0, "", "", "", nil},
		{"a directory", map[string]string{"opt/c/x": ""}, map[string]string{"NCCL_CONF_FILE": "/opt/c"}, 0, "", "", "", syscall.EINVAL},
		{"a file where it is", nil, map[string]string{"NCCL_CONF_FILE": "nccl.conf"}, 0, "", "", "", syscall.EINVAL},
		{"a topology", map[string]string{"opt/t.xml": topology}, map[string]string{"NCCL_TOPO_FILE": "/opt/t.xml"}, 0, "/root", "", reduced, nil},
		{"a topology that nccl.conf names", map[string]string{"opt/t.xml": topology, "etc/nccl.conf": "NCCL_TOPO_FILE=/opt/t.xml\n"}, nil, 0, "/root", "NCCL_TOPO_FILE=/opt/t.xml", reduced, nil},
		{"a domain of five digits, as behind VMD", map[string]string{"opt/t.xml": `<system><pci busid="1F0AB:01:00.0"/><pci busid="0000:15:00.8"/><pci busid="x"/></system>`}, map[string]string{"NCCL_TOPO_FILE": "/opt/t.xml"}, 0, "/root", "", `<system><pci busid="1f0ab:01:00.0"></pci></system>`, nil},
		{"one that is a tower", map[string]string{"opt/t.xml": strings.Repeat("<pci>", 1000) + strings.Repeat("</pci>", 1000)}, map[string]string{"NCCL_TOPO_FILE": "/opt/t.xml"}, 0, "/root", "", "", access.ErrMalformed},
		{"one that is not there", nil, map[string]string{"NCCL_TOPO_FILE": "/opt/t.xml"}, 0, "/root", "", "", nil},
		{"one that is no topology", map[string]string{"etc/shadow": "root:<x:1:\n"}, map[string]string{"NCCL_TOPO_FILE": "/etc/shadow"}, 0, "/root", "", "", access.ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, table := NewProcessTree(t)
			files := map[string]string{"root/etc/hostname": "n"}
			for name, text := range c.files {
				files["root/"+name] = text
			}
			p.Process(42, nil, files)
			got, err := openJobFiles(table.Tree, job{pid: 42, env: c.env, who: credentials{uid: c.uid}, home: c.home})
			if !errors.Is(err, c.err) {
				t.Error(err)
				return
			}
			if c.err != nil {
				return
			}
			want := map[string]string{}
			for pair := range strings.FieldsSeq(c.conf) {
				k, v, _ := strings.Cut(pair, "=")
				want[k] = v
			}
			if !maps.Equal(got.conf, want) || got.topology != c.topology {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestJobFilesStayInside: links resolve inside the process's root, and anything but a regular file is not opened.
func TestJobFilesStayInside(t *testing.T) {
	p, table := NewProcessTree(t)
	p.Process(42, nil, map[string]string{"root/etc/real": "NCCL_A=1\n"})
	root := filepath.Join(p.Dir, "proc/42/root")
	secret := filepath.Join(p.Dir, "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("NCCL_SECRET=1\n"), 0o600), os.Symlink("/etc/real", filepath.Join(root, "inside")),
		os.Symlink("../../../../secret", filepath.Join(root, "outside")), unix.Mkfifo(filepath.Join(root, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"/inside": 1, "/outside": 0, "/../../../secret": 0} {
		got, err := openJobFiles(table.Tree, job{pid: 42, env: map[string]string{"NCCL_CONF_FILE": name}})
		if err != nil || len(got.conf) != want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	if _, err := openJobFiles(table.Tree, job{
		pid: 42, env: map[string]string{"NCCL_CONF_FILE": "/pipe"},
	}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a pipe: %v", err)
	}
	if err := os.Symlink(p.Dir, filepath.Join(p.Dir, "proc/43")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(p.Dir, "root")); err != nil {
		t.Fatal(err)
	}
	if _, err := rootOf(table.Tree, 43); err == nil {
		t.Error("a copied tree leads to the root of this machine")
	}
}

// TestJobFilesOfThisProcess uses the kernel's own link.
func TestJobFilesOfThisProcess(t *testing.T) {
	tr, err := rooted.Open(rooted.Paths{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if !tr.IsSysfs() {
		t.Fatal("/sys is no sysfs")
	}
	file := filepath.Join(t.TempDir(), "nccl.conf")
	if err := os.WriteFile(file, []byte("NCCL_DEBUG=WARN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := openJobFiles(
		tr,
		job{pid: os.Getpid(), env: map[string]string{"NCCL_CONF_FILE": file}, who: ownCredentials(t)},
	)
	if err != nil || got.conf["NCCL_DEBUG"] != "WARN" {
		t.Errorf("%+v %v", got, err)
	}
}

// TestJobFilesOfTheKernel: files that the kernel generates on read are regular to stat(2), and are not opened, directly
// or through a link.
func TestJobFilesOfTheKernel(t *testing.T) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	link := filepath.Join(t.TempDir(), "nccl.conf")
	if err := os.Symlink("/proc/uptime", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/proc/uptime", "/sys/class/net/lo/mtu", link} {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			t.Fatalf("%s is no regular file: %v", name, err)
		}
		if b, err := readBelow(root, name, ownCredentials(t)); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}

func FuzzJobFiles(f *testing.F) {
	f.Add([]byte("NCCL_A=1\n#x\n=\n"), "1001")
	f.Add([]byte(passwdText), "0")
	f.Add([]byte(`<system><cpu numaid="1"><pci busid="0000:15:00.0"/></cpu></system>`), "")
	f.Fuzz(func(t *testing.T, b []byte, uid string) {
		homeOf(b, uid)
		conf := map[string]string{}
		room := settingsLength
		addSettings(conf, &room, b)
		for name := range conf {
			if !strings.HasPrefix(name, "NCCL_") {
				t.Errorf("%q passes", name)
			}
		}
		text, err := ReducedTopology(b)
		if err != nil {
			return
		}
		if again, err := ReducedTopology([]byte(text)); err != nil || again != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}
