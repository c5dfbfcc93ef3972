// Command noise measures how much a running exporter disturbs a compute-bound thread: the thread is pinned to a
// processor, reads the clock continuously, and counts the gaps. Blocks without an exporter, with one scraped every 15
// s, and with one scraped every second alternate, so that other load on the machine affects all of them.
//
//	make jitter
//	go run ./test/noise -exporter bin/rdma_exporter -for 5m -blocks 4 -cpu 1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	exporter, machine string
	length            time.Duration
	blocks, cpu       int
	pin               int
}

// undisturbed restarts the program if the runtime would interrupt the loop every 10 ms, which only the environment can
// prevent.
func undisturbed() error {
	const setting = "asyncpreemptoff=1"
	if strings.Contains(os.Getenv("GODEBUG"), setting) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, append(os.Environ(), "GODEBUG="+setting))
}

func main() {
	if err := undisturbed(); err != nil {
		fmt.Fprintln(os.Stderr, "noise:", err)
		os.Exit(1)
	}
	var o options
	flag.StringVar(&o.exporter, "exporter", "bin/rdma_exporter", "the program to run")
	flag.StringVar(&o.machine, "machine", "", "a capture whose files the exporter reads from a folder; this host if empty")
	flag.DurationVar(&o.length, "for", time.Minute, "length of a block")
	flag.IntVar(&o.blocks, "blocks", 3, "blocks of each kind")
	flag.IntVar(&o.cpu, "cpu", 1, "processor of the thread that measures")
	flag.IntVar(&o.pin, "exporter-cpu", -1, "processor to keep the exporter on; -1: any")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	debug.SetGCPercent(-1) // the loop allocates nothing
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "noise:", err)
		os.Exit(1)
	}
}

// kinds are the alternating blocks.
var kinds = []struct {
	name   string
	scrape time.Duration // 0: no exporter
}{
	{"off", 0},
	{"on, a scrape each 15 s", 15 * time.Second},
	{"on, a scrape each second", time.Second},
}

func run(ctx context.Context, o *options) error {
	root, remove, err := unpack(o.machine)
	if err != nil {
		return err
	}
	defer remove()
	results := make([]result, len(kinds))
	for i := range results {
		results[i].name = kinds[i].name
	}
	before := load()
	for block := range o.blocks {
		for i, k := range kinds {
			fmt.Fprintf(os.Stderr, "block %d of %d: %s\n", block+1, o.blocks, k.name)
			x, err := startExporter(ctx, o, root, k.scrape)
			if err != nil {
				return err
			}
			g, err := measure(ctx, o.cpu, o.length)
			results[i].gaps.add(g)
			results[i].exporter += x.stop()
			if err != nil {
				return err
			}
		}
	}
	fmt.Print(report(o, results, before, load()))
	return nil
}
