package job

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhetherNCCLIsAsked(t *testing.T) {
	dir := t.TempDir()
	for path, target := range map[string]string{"self": "net:[1]", "1": "net:[1]", "2": "net:[2]"} {
		must(t, os.MkdirAll(filepath.Join(dir, "proc", path, "ns"), 0o755))
		must(t, os.Symlink(target, filepath.Join(dir, "proc", path, "ns/net")))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "sys"), 0o755))
	l, err := live.Open(rooted.Paths{RootFS: dir})
	must(t, err)
	defer l.Close()
	type process = accel.Process
	env := func(setting string) map[string]string {
		name, value, _ := strings.Cut(setting, "=")
		return map[string]string{name: value}
	}
	for name, c := range map[string]struct {
		processes []process
		given     string
		at, why   string
	}{
		"NCCL":                 {[]process{{PID: 1, HasNCCL: true, NCCL: "2.27.3"}}, "", "localhost:28028", ""},
		"NCCL without version": {[]process{{PID: 1, HasNCCL: true}}, "", "localhost:28028", ""},
		"address of the job":   {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ADDR=127.0.0.1:5555")}}, "", "127.0.0.1:5555", ""},
		"address of the host":  {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ADDR=10.0.0.11:5555")}}, "", "10.0.0.11:5555", ""},
		"another address":      {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ADDR=10.0.0.99:5555")}}, "", "", "is no address of this host"},
		"a name":               {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ADDR=example.com:80")}}, "", "", "is no address of this host"},
		"selected":             {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ADDR=example.com:80")}}, "10.0.0.99:1", "10.0.0.99:1", ""},
		"disabled":             {[]process{{PID: 1, HasNCCL: true, Env: env("NCCL_RAS_ENABLE=0")}}, "", "", "NCCL_RAS_ENABLE=0"},
		"old":                  {[]process{{PID: 1, HasNCCL: true, NCCL: "2.22.3"}}, "", "", "NCCL 2.22.3 has no RAS service"},
		"other network":        {[]process{{PID: 2, HasNCCL: true}}, "", "", "another network namespace"},
		"unknown network":      {[]process{{PID: 3, HasNCCL: true}}, "", "localhost:28028", ""},
		"one of two":           {[]process{{PID: 2, HasNCCL: true}, {PID: 1, HasNCCL: true}}, "", "localhost:28028", ""},
		"no NCCL":              {[]process{{PID: 1}}, "", "", "no visible process of it has NCCL loaded"},
		"hidden":               {nil, "", "localhost:28028", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r Row
			for i := range c.processes {
				p := &c.processes[i]
				r.Processes = append(r.Processes, Process{p.PID, "", p.NCCL, p})
			}
			w := r.Plan(l.Files, c.given, []netip.Addr{netip.MustParseAddr("10.0.0.11")})
			if w.Asked != (c.why == "") || w.Address != c.at || !strings.Contains(w.Why, c.why) {
				t.Errorf("%+v, want %+v", w, c)
			}
		})
	}
}
