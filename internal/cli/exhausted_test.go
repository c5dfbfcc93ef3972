package cli

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/test/alone"
	"rdma_exporter/test/machines"
)

// TestOutOfFiles: without a descriptor left the program answers who is connected, counts what it could not read, and
// reads all again when there are some.
func TestOutOfFiles(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	s := startProgram(
		t,
		"--path.rootfs="+machines.Tree(t, "dgx-h100-ib"),
		"--collect.min-interval=0s",
		"--alerting.interval=1s",
	)
	client := &http.Client{} // keeps its connection
	get := func() (body string) {
		t.Helper()
		resp, err := client.Get(s.url + "/metrics")
		must(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, b)
		}
		return string(b)
	}
	failed := regexp.MustCompile(`rdma_scrape_errors_total{collector="[a-z]+",(device="[^"]*",)?reason="(failed|io)"} [1-9]`)
	const keep = `rdma_port_state_id{device="mlx5_3",port="1"} 4`
	get()
	whole := get()
	if !strings.Contains(whole, keep) || failed.MatchString(whole) {
		t.Fatalf("before: %.2000s", whole)
	}
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	last, err := os.Open("/dev/null")
	must(t, err)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(last.Fd()), Max: limit.Max}))
	var taken []*os.File // what is free below the limit
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	get() // may join a collection that began before
	for range 5 {
		if body := get(); !failed.MatchString(body) {
			t.Errorf("nothing is counted: %s",
				strings.Join(regexp.MustCompile(`rdma_scrape_errors.*`).FindAllString(body, -1), "\n"))
		}
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	for _, f := range append(taken, last) {
		must(t, f.Close())
	}
	get()
	body := get()
	series := func(body string) int { return strings.Count(body, "\nrdma_port_") }
	if !strings.Contains(body, keep) || series(body) < series(whole) {
		t.Errorf("afterwards: %d series of ports, %d before", series(body), series(whole))
	}
	if status, _, _ := s.get(t, "/"); status != http.StatusOK { // a new connection
		t.Errorf("the page: %d", status)
	}
}
