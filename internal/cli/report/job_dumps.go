package report

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/words"
)

// readDumps adds the records of each job.
func (j *Job) readDumps(ctx context.Context, c *machine.Config, out *JobReport) error {
	if j.dumps == "" {
		return nil
	}
	opened, err := live.Open(c.Paths)
	if err != nil {
		return err
	}
	defer opened.Close()
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot read the dumps of NCCL: %w", err)
	}
	for i := range out.Jobs {
		r := &out.Jobs[i]
		hosts := slices.DeleteFunc([]string{name, r.Pod}, func(s string) bool { return s == "" })
		r.Dumps = &job.Dumps{Rates: []nccl.Rates{}}
		rates, err := ratesIn(ctx, j.dumps, r.PIDs(opened.Files), hosts)
		switch {
		case err != nil:
			r.Dumps.Why = err.Error()
		case len(rates) == 0:
			r.Dumps.Why = "no records of its processes with NCCL in " + j.dumps
		default:
			r.Dumps.Rates = rates
		}
	}
	return nil
}

// dumpsTimeout is that of reading the directory, which may be on a file server.
const dumpsTimeout = 5 * time.Second

// ratesIn returns the records of the processes with these PIDs in their own PID namespaces.
func ratesIn(ctx context.Context, dir string, pids []int, hosts []string) ([]nccl.Rates, error) {
	ctx, cancel := context.WithTimeout(ctx, dumpsTimeout)
	defer cancel()
	files, err := rooted.Tails(ctx, dir,
		func(name string) bool { return slices.Contains(pids, nccl.PIDOfDump(name, hosts)) })
	if err != nil {
		return nil, err
	}
	dumps := map[int][]byte{}
	for name, text := range files {
		dumps[nccl.PIDOfDump(name, hosts)] = text
	}
	return nccl.RatesOfDumps(dumps), nil
}

// printDumps writes the records of a job.
func printDumps(to *textOf, d *job.Dumps) {
	if d == nil {
		return
	}
	if d.Why != "" {
		to.line("  NCCL Inspector: %s", d.Why)
		return
	}
	to.line("  NCCL Inspector, bus bandwidth:")
	for _, r := range d.Rates {
		of := ""
		if r.Here > 1 {
			of = fmt.Sprintf(", from %.1f (rank %d) to %.1f (rank %d)",
				r.Lowest.Rate, r.Lowest.Rank, r.Highest.Rate, r.Highest.Rank)
		}
		to.line("    %s of %s, %d here, %s of %s: %.1f GB/s%s; last record %s", r.Communicator, words.Count(r.Ranks, "rank"),
			r.Here, r.Operation, sizeOf(r.Bytes), r.Median, of, r.Last.Format("2006-01-02 15:04:05 UTC"))
	}
	to.line("    Evidence only: ranks wait for each other, so that a rank that enters late has the highest figure.")
}
