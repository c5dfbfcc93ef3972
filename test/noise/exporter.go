package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/machine"
	"rdma_exporter/test/port"
	"rdma_exporter/test/process"
)

// unpack writes the files and links of a recorded machine into a directory, like a copied tree.
func unpack(file string) (root string, remove func(), err error) {
	if file == "" {
		return "/", func() {}, nil
	}
	if root, err = os.MkdirTemp("", "noise"); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(root) }
	if err := machine.Unpack(file, root); err != nil {
		remove()
		return "", nil, err
	}
	return root, remove, nil
}

// exporter is a running exporter that is scraped; nil: none.
type exporter struct {
	cmd    *exec.Cmd
	url    string
	cancel context.CancelFunc
	began  time.Duration // CPU time at the start of the block
	state  string
}

// startExporter starts an exporter with rule evaluation, and waits until it is ready.
func startExporter(ctx context.Context, o *options, root string, every time.Duration) (*exporter, error) {
	if every == 0 {
		return nil, nil
	}
	state, err := os.MkdirTemp("", "noise-state")
	if err != nil {
		return nil, err
	}
	x := &exporter{state: state}
	x.cmd = exec.Command(o.exporter, "--path.rootfs="+root, "--state.dir="+state, "--web.listen-address="+port.Any,
		"--log.level=error")
	x.cmd.Stderr = os.Stderr
	if err := x.cmd.Start(); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: make build builds it", o.exporter)
	} else if err != nil {
		return nil, err
	}
	if o.pin >= 0 {
		var set unix.CPUSet
		set.Set(o.pin)
		if err := pinAll(x.cmd.Process.Pid, &set); err != nil {
			x.stop()
			return nil, err
		}
	}
	address, err := port.Await(ctx, x.cmd.Process.Pid, 1)
	if err != nil {
		x.stop()
		return nil, err
	}
	x.url = "http://" + address[0]
	for tries := 0; scrape(x.url+"/-/ready") != nil; tries++ {
		if tries == 300 {
			x.stop()
			return nil, fmt.Errorf("%s is not ready after 30 s", o.exporter)
		}
		time.Sleep(100 * time.Millisecond)
	}
	ctx, x.cancel = context.WithCancel(ctx)
	x.began = x.spent()
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := scrape(x.url + "/metrics"); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "scrape:", err)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return x, nil
}

// pinAll pins all threads of a process, and those they start, to some processors.
func pinAll(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range threads {
		if id, e := strconv.Atoi(t.Name()); e == nil && err == nil {
			err = unix.SchedSetaffinity(id, set)
		}
	}
	return err
}

func scrape(url string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, r.Status)
	}
	return nil
}

// spent returns the CPU time of all threads.
func (x *exporter) spent() time.Duration {
	sum, _ := process.CPU(x.cmd.Process.Pid) // an ended process uses none
	return sum
}

// stop ends the exporter and returns its CPU time since it was ready.
func (x *exporter) stop() (took time.Duration) {
	if x == nil {
		return 0
	}
	if x.cancel != nil {
		x.cancel()
		took = x.spent() - x.began
	}
	_ = x.cmd.Process.Signal(os.Interrupt)
	_ = x.cmd.Wait()
	_ = os.RemoveAll(x.state)
	return took
}
