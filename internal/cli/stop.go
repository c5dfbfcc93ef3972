package cli

import (
	"context"
	"fmt"
	"io"
	"time"
)

// stopTime is the maximum time from the signal to the exit: 5s for scrapes, 5s for alerts, and what is written. The pod
// is killed after 15s.
const stopTime = 13 * time.Second

// stopFailed is the exit code that shells show of a process that SIGTERM has ended. No command has it as a result.
const stopFailed = 143

// Until calls run and returns its exit code. A run that has not ended stopTime after ctx is given up: a call to a file
// system that hangs does not return, and no context ends it.
func Until(ctx context.Context, stderr io.Writer, run func() int) int {
	end := make(chan int, 1)
	go func() { end <- run() }()
	select {
	case code := <-end:
		return code
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case code := <-end:
		return code
	case <-timer.C:
		fmt.Fprintf(stderr, "rdma_exporter: not stopped within %s of the signal, exiting: a file system does not respond, "+
			"changes of the last minute may be lost: check the mount of the state directory\n", stopTime)
		return stopFailed
	}
}
