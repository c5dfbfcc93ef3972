//go:build e2e

package fabric

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree is a two-level fabric: each leaf has a link to each spine.
type tree struct{ spines, leaves, hosts int } // hosts of each leaf

// Names of nodes in the net file and on the simulator's console.
func hostName(i int) string  { return fmt.Sprintf("H-%016x", 0x1000000000000+i*16) }
func leafName(i int) string  { return fmt.Sprintf("S-%016x", 0x2000000000000+i*16) }
func spineName(i int) string { return fmt.Sprintf("S-%016x", 0x3000000000000+i*16) }

// linkCounters enables 1X and 4X, SDR to EDR: it comes up at 4X EDR.
const linkCounters = "\tw=3\ts=7\te=3\n"

// netFile writes the fabric in the format of ibsim. Ports of a leaf are those of its hosts, then one per spine.
func (f tree) netFile() string {
	var b strings.Builder
	for i := range f.leaves * f.hosts {
		fmt.Fprintf(&b, "Hca\t1 %q # \"node%04d mlx5_0\"\n[1]\t%q[%d]%s\n",
			hostName(i), i, leafName(i/f.hosts), i%f.hosts+1, linkCounters)
	}
	for l := range f.leaves {
		fmt.Fprintf(&b, "Switch\t%d %q # \"leaf%03d\"\n", f.hosts+f.spines, leafName(l), l)
		for h := range f.hosts {
			fmt.Fprintf(&b, "[%d]\t%q[1]%s", h+1, hostName(l*f.hosts+h), linkCounters)
		}
		for s := range f.spines {
			fmt.Fprintf(&b, "[%d]\t%q[%d]%s", f.hosts+s+1, spineName(s), l+1, linkCounters)
		}
		b.WriteString("\n")
	}
	for s := range f.spines {
		fmt.Fprintf(&b, "Switch\t%d %q # \"spine%03d\"\n", f.leaves, spineName(s), s)
		for l := range f.leaves {
			fmt.Fprintf(&b, "[%d]\t%q[%d]%s", l+1, leafName(l), f.hosts+s+1, linkCounters)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// links counts them.
func (f tree) links() int { return f.leaves * (f.hosts + f.spines) }

func (f tree) nodes() int { return f.leaves*(f.hosts+1) + f.spines }

// subnet is a simulated fabric with its processes.
type subnet struct {
	tree
	dir     string
	socket  string
	console io.Writer
	sim     int // process
	sm      *exec.Cmd
}

// simulate starts the simulator and waits until it answers.
func simulate(t *testing.T, f tree) *subnet {
	t.Helper()
	return simulateFile(t, f, f.netFile())
}

// simulateFile simulates a fabric with a modified file.
func simulateFile(t *testing.T, f tree, file string) *subnet {
	t.Helper()
	s := &subnet{
		tree: f, dir: t.TempDir(),
		socket: "rdma_exporter-" + strings.ReplaceAll(t.Name(), "/", "-") + fmt.Sprint(os.Getpid()),
	}
	net := filepath.Join(s.dir, "net")
	must(t, os.WriteFile(net, []byte(file), 0o644))
	cmd := exec.Command("ibsim", "-s", "-N", "4096", "-S", "256", "-P", "20000", "-L", "4096", net)
	cmd.Env = s.environment()
	console, err := cmd.StdinPipe()
	must(t, err)
	s.console = console
	s.run(t, cmd, "ibsim")
	s.sim = cmd.Process.Pid
	eventually(t, "the simulator", func() string {
		if _, err := s.tool("smpquery", "nodeinfo", "-D", "0"); err != nil {
			return err.Error()
		}
		return ""
	})
	return s
}

func (s *subnet) environment() []string {
	return append(os.Environ(), "IBSIM_SOCKNAME="+s.socket, "OSM_CACHE_DIR="+s.dir, "OSM_TMP_DIR="+s.dir)
}

// run starts a process that ends with the test. Its log is shown if the test fails.
func (s *subnet) run(t *testing.T, cmd *exec.Cmd, name string) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	must(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = s.dir // libumad2sim creates files there
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // ended by the test
		if t.Failed() {
			b, err := os.ReadFile(log.Name())
			t.Logf("%s: %v\n%s", name, err, b[max(0, len(b)-4000):])
		}
	})
}

// manage starts opensm and waits until all links are ACTIVE.
func (s *subnet) manage(t *testing.T) {
	t.Helper()
	s.sm = exec.Command("ibsim-run", "opensm", "-f", filepath.Join(s.dir, "osm"))
	s.sm.Env = s.environment()
	s.run(t, s.sm, "opensm")
	eventually(t, "opensm", func() string {
		out, err := s.tool("iblinkinfo", "-l")
		if n := strings.Count(out, "Active/"); err != nil || n != 2*s.links() {
			return fmt.Sprintf("%d ends of links are ACTIVE, want %d: %v", n, 2*s.links(), err)
		}
		return ""
	})
}

// tool runs a diagnostic tool on the simulated fabric and returns its output.
func (s *subnet) tool(args ...string) (string, error) {
	cmd := exec.Command("ibsim-run", args...)
	cmd.Env, cmd.Dir = s.environment(), s.dir
	out, err := cmd.Output()
	return string(out), err
}

// do writes a command to the simulator's console.
func (s *subnet) do(t *testing.T, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(s.console, format+"\n", args...)
	must(t, err)
}
