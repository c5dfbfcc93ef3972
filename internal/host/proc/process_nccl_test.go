package proc

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
)

// TestJobFilesThatHang: a file on a hung file server costs the settings of that process only, delays a scan by
// jobFilesTime at most, and is not read twice. A late result is used by the next scan.
func TestJobFilesThatHang(t *testing.T) {
	p, table := NewProcessTree(t)
	for pid := 42; pid < 45; pid++ {
		p.Process(pid, []string{"/dev/nvidia3"}, map[string]string{
			"maps": ncclMaps, "stat": statText, "environ": "HOME=/root\x00NCCL_DEBUG=INFO\x00",
			"root/etc/nccl.conf": "NCCL_IB_TC=106\n",
		})
	}
	table.jobs.timeout = jobFilesTime
	synctest.Test(t, func(t *testing.T) {
		server := make(chan struct{})
		asked := make(chan int, 99)
		real := table.jobs.files
		table.jobs.files = func(j job) (*jobFiles, error) {
			if asked <- j.pid; j.pid == 42 {
				<-server
			}
			return real(j)
		}
		scan := func(want ...int) {
			t.Helper()
			start := time.Now()
			found, refused, err := table.Processes(t.Context(), nil, false)
			if len(found) != 3 || refused || err != nil || time.Since(start) > jobFilesTime {
				t.Errorf("after %s: %+v %v %v", time.Since(start), found, refused, err)
			}
			var have []int
			for _, one := range found {
				if one.Conf["NCCL_IB_TC"] == "106" {
					have = append(have, one.PID)
				}
				if one.Env["NCCL_DEBUG"] != "INFO" {
					t.Errorf("%+v", one)
				}
			}
			if !slices.Equal(have, want) {
				t.Errorf("settings of %v, want %v", have, want)
			}
		}
		scan(43, 44)
		scan(43, 44)
		close(server)
		synctest.Wait()
		scan(42, 43, 44)
		scan(42, 43, 44)
		close(asked)
		var all []int
		for pid := range asked {
			all = append(all, pid)
		}
		if slices.Sort(all); !slices.Equal(all, []int{42, 43, 44}) {
			t.Errorf("read files of %v", all)
		}
	})
}

// TestReadsAtATime: reads that hang hold at most so many threads, and leave those of other jobs and users room. The
// others are read once these have returned.
func TestReadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := make(chan struct{})
		table := newJobReader(nil)
		table.timeout = jobFilesTime
		table.nodes = func(int) (none deviceNodes) { return none }
		table.files = func(j job) (*jobFiles, error) {
			if j.home == "/hung" {
				<-server
			}
			return &jobFiles{}, nil
		}
		pid := 0
		add := func(uid uint32, of, home string, n int) {
			for range n {
				pid++
				table.request(job{pid: pid, start: "1", of: of, who: credentials{uid: uid}, home: home})
			}
		}
		add(1, "slurm/1", "/hung", 9)   // 1 to 9
		add(1, "slurm/2", "/home/1", 9) // 10 to 18: of the same user
		for _, of := range []string{"slurm/3", "slurm/4", "slurm/5", "slurm/6"} {
			add(2, of, "/hung", 9) // 19 to 54
		}
		add(3, "slurm/2", "/home/3", 9) // 55 to 63: a job that another user claims to be
		state := func() (read, reading []int) {
			table.mu.Lock()
			defer table.mu.Unlock()
			for _, j := range table.reading {
				reading = append(reading, j.pid)
			}
			return slices.Sorted(maps.Keys(table.done)), slices.Sorted(slices.Values(reading))
		}
		table.read(t.Context())
		read, reading := state()
		wantRead := []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 55, 56, 57, 58, 59, 60, 61, 62, 63}
		want := []int{1, 2, 19, 20, 28, 29, 37, 38, 46, 47}
		if !slices.Equal(reading, want) || !slices.Equal(read, wantRead) {
			t.Errorf("reading %v, read %v", reading, read)
		}
		for uid := range uint32(20) {
			add(100+uid, "slurm/7", "/hung", 2)
		}
		table.read(t.Context())
		if _, reading := state(); len(reading) != readsOfAll {
			t.Errorf("reading %d, want %d", len(reading), readsOfAll)
		}
		close(server)
		synctest.Wait()
		if read, reading := state(); len(reading) != 0 || len(read) < len(wantRead)+readsOfAll {
			t.Errorf("reading %v, read %v", reading, read)
		}
	})
}

// TestJobFilesAreTriedAgain: a failed read is retried in the next scan, and a reused PID has other files.
func TestJobFilesAreTriedAgain(t *testing.T) {
	p, table := NewProcessTree(t)
	p.Process(42, []string{"/dev/nvidia3"}, map[string]string{"maps": ncclMaps, "stat": statText})
	answers := []error{syscall.EACCES, syscall.EIO, nil}
	table.jobs.files = func(job) (*jobFiles, error) {
		err := answers[0]
		answers = answers[1:]
		if err != nil {
			return nil, err
		}
		return &jobFiles{conf: map[string]string{"NCCL_A": "1"}}, nil
	}
	for i, want := range []struct{ refused, read bool }{{true, false}, {false, false}, {false, true}, {false, true}} {
		found, refused, err := table.Processes(t.Context(), nil, false)
		if len(found) != 1 || refused != want.refused || (found[0].Conf != nil) != want.read || err != nil {
			t.Errorf("scan %d: %+v %v %v", i, found, refused, err)
		}
	}
	// It closes its GPU, and keeps its RDMA device.
	if err := os.Remove(filepath.Join(p.Dir, "proc", "42", "fd", "0")); err != nil {
		t.Fatal(err)
	}
	p.Process(42, []string{"/dev/infiniband/uverbs0"}, nil)
	if found, _, err := table.Processes(t.Context(), nil, false); len(found) != 1 || found[0].HasNCCL ||
		found[0].Conf != nil || err != nil {
		t.Errorf("without a GPU: %+v %v", found, err)
	}
	if files, _, err := table.jobs.of(42, "another start"); files != nil || err != nil {
		t.Errorf("%+v %v", files, err)
	}
}

// TestTruncatedSettings: an omitted setting makes them unknown, and the rest stays within the limit.
func TestTruncatedSettings(t *testing.T) {
	for _, c := range []struct {
		name, environ string
		files         map[string]string
		env           map[string]string
		known         bool
	}{
		{"as it should be", "NCCL_A=1\x00NCCL_A=2\x00WORLD_SIZE=8\x00", nil, map[string]string{"NCCL_A": "1", "WORLD_SIZE": "8"}, true},
		{"those of UCX for RDMA", "UCX_IB_TRAFFIC_CLASS=106\x00UCX_TLS=rc\x00UCX_IB=1\x00", map[string]string{"root/etc/nccl.conf": "UCX_IB_SL=3\n"}, map[string]string{"UCX_IB_TRAFFIC_CLASS": "106", "UCX_TLS": "rc"}, true},
		{"a long one of another program", "A=" + strings.Repeat("x", 900<<10) + "\x00NCCL_A=1\x00", nil, map[string]string{"NCCL_A": "1"}, true},
		{"more than is read", "NCCL_A=1\x00A=" + strings.Repeat("x", host.MaxFile) + "\x00", nil, map[string]string{}, false},
		{"one that is too long", "NCCL_A=" + strings.Repeat("x", settingLength) + "\x00NCCL_B=1\x00", nil, map[string]string{"NCCL_B": "1"}, false},
		{"too long for a scheduler", "SLURM_JOB_ID=" + strings.Repeat("1", settingLength) + "\x00", nil, map[string]string{}, false},
		{"names that are none", "NCCL_A\njob: slurm/1\nB=1\x00NCCL_=1\x00NCCL_A: B=1\x00NCCL_A\n=1\x00", nil, map[string]string{}, true},
		{"a file with one that is too long", "", map[string]string{"root/etc/nccl.conf": "NCCL_A=" + strings.Repeat("x", settingLength) + "\n"}, map[string]string{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, table := NewProcessTree(t)
			files := map[string]string{
				"maps": ncclMaps, "stat": statText, "environ": c.environ, "root/etc/passwd": passwdText,
			}
			maps.Copy(files, c.files)
			p.Process(42, []string{"/dev/nvidia3"}, files)
			found, refused, err := table.Processes(t.Context(), nil, false)
			if len(found) != 1 || !maps.Equal(found[0].Env, c.env) || (found[0].Conf != nil) != c.known ||
				refused || err != nil {
				t.Errorf("%.300v %v %v", found, refused, err)
			}
		})
	}
	many := strings.Builder{}
	for i := range 100 {
		many.WriteString("NCCL_" + strings.Repeat("A", i+1) + "=" + strings.Repeat("x", 1000) + "\x00")
	}
	env, whole := environment([]byte(many.String()))
	sum := 0
	for name, value := range env {
		sum += len(name) + len(value)
	}
	if whole || sum > settingsLength || sum < settingsLength-settingLength {
		t.Errorf("%d bytes, whole: %v", sum, whole)
	}
}
