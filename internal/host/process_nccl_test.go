package host

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
)

// TestJobFilesThatHang: a slow file server delays the settings only, and late results are used by the next scan.
func TestJobFilesThatHang(t *testing.T) {
	p, table := newProcessTree(t)
	for pid := 42; pid < 45; pid++ {
		p.process(pid, []string{"/dev/nvidia3"}, map[string]string{
			"maps": ncclMaps, "stat": stat, "environ": "HOME=/root\x00NCCL_DEBUG=INFO\x00",
			"root/etc/nccl.conf": "NCCL_IB_TC=106\n",
		})
	}
	table.jobs.timeout = jobFilesTime
	synctest.Test(t, func(t *testing.T) {
		server := make(chan struct{})
		var asked []int
		real := table.jobs.files
		table.jobs.files = func(j job) (*jobFiles, error) {
			if asked = append(asked, j.pid); j.pid == 42 {
				<-server
			}
			return real(j)
		}
		scan := func(settings int) {
			t.Helper()
			start := time.Now()
			found, refused, err := table.Processes(t.Context(), nil, false)
			if len(found) != 3 || refused || err != nil || time.Since(start) > jobFilesTime {
				t.Errorf("after %s: %+v %v %v", time.Since(start), found, refused, err)
			}
			have := 0
			for _, one := range found {
				if one.Conf["NCCL_IB_TC"] == "106" {
					have++
				}
				if one.Env["NCCL_DEBUG"] != "INFO" {
					t.Errorf("%+v", one)
				}
			}
			if have != settings {
				t.Errorf("settings of %d", have)
			}
		}
		scan(0)
		scan(0)
		close(server)
		synctest.Wait()
		scan(3)
		scan(3)
		if !slices.Equal(asked, []int{42, 43, 44}) {
			t.Errorf("read files of %v", asked)
		}
	})
}

// TestJobFilesAreTriedAgain: a failed read is retried in the next scan, and a reused PID has other files.
func TestJobFilesAreTriedAgain(t *testing.T) {
	p, table := newProcessTree(t)
	p.process(42, []string{"/dev/nvidia3"}, map[string]string{"maps": ncclMaps, "stat": stat})
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
	if err := os.Remove(filepath.Join(p.dir, "proc", "42", "fd", "0")); err != nil {
		t.Fatal(err)
	}
	p.process(42, []string{"/dev/infiniband/uverbs0"}, nil)
	if found, _, err := table.Processes(t.Context(), nil, false); len(found) != 1 || found[0].HasNCCL ||
		found[0].Conf != nil || err != nil {
		t.Errorf("without a GPU: %+v %v", found, err)
	}
	if files, err := table.jobs.of(42, "another start"); files != nil || err != nil {
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
		{"those of UCX for RDMA", "UCX_IB_TRAFFIC_CLASS=106\x00UCX_TLS=rc\x00UCX_IB=1\x00", map[string]string{"root/etc/nccl.conf": "UCX_IB_SL=3\n"}, map[string]string{"UCX_IB_TRAFFIC_CLASS": "106"}, true},
		{"a long one of another program", "A=" + strings.Repeat("x", 900<<10) + "\x00NCCL_A=1\x00", nil, map[string]string{"NCCL_A": "1"}, true},
		{"more than is read", "NCCL_A=1\x00A=" + strings.Repeat("x", MaxFile) + "\x00", nil, map[string]string{}, false},
		{"one that is too long", "NCCL_A=" + strings.Repeat("x", settingLength) + "\x00NCCL_B=1\x00", nil, map[string]string{"NCCL_B": "1"}, false},
		{"too long for a scheduler", "SLURM_JOB_ID=" + strings.Repeat("1", settingLength) + "\x00", nil, map[string]string{}, false},
		{"names that are none", "NCCL_A\njob: slurm/1\nB=1\x00NCCL_=1\x00NCCL_A: B=1\x00NCCL_A\n=1\x00", nil, map[string]string{}, true},
		{"a file with one that is too long", "", map[string]string{"root/etc/nccl.conf": "NCCL_A=" + strings.Repeat("x", settingLength) + "\n"}, map[string]string{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, table := newProcessTree(t)
			files := map[string]string{
				"maps": ncclMaps, "stat": stat, "environ": c.environ, "status": "Uid:\t0\t0\t0\t0\n", "root/etc/passwd": passwd,
			}
			maps.Copy(files, c.files)
			p.process(42, []string{"/dev/nvidia3"}, files)
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
