package report

import (
	"context"
	"fmt"
	"sync"

	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/job"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/nccl"
)

// jobsAsked limits the jobs that NCCL is asked about.
const jobsAsked = 8

// askNCCL adds NCCL's answers. The jobs are asked about at the same time, since a query takes up to 12s.
func (j *Job) askNCCL(ctx context.Context, c *machine.Config, out *JobReport) error {
	silent := ""
	switch {
	case !j.nccl:
		silent = "--no-nccl"
	case c.Replay != "":
		silent = "this is a replay"
	}
	if silent != "" {
		for i := range out.Jobs {
			out.Jobs[i].NCCL = &job.NCCL{Why: silent}
		}
		return nil
	}
	opened, err := live.Open(c.Paths)
	if err != nil {
		return err
	}
	defer opened.Close()
	addresses := job.HostAddresses()
	var all sync.WaitGroup
	asked := 0
	for i := range out.Jobs {
		row := &out.Jobs[i]
		row.NCCL = row.Plan(opened.Files, j.ras, addresses)
		if !row.NCCL.Asked {
			continue
		}
		if asked++; asked > jobsAsked {
			row.NCCL = &job.NCCL{Why: fmt.Sprintf("only the first %d jobs are asked about: name the job", jobsAsked)}
			continue
		}
		local := nccl.Local{PIDs: row.PIDs(opened.Files), Addresses: addresses}
		all.Go(func() { row.NCCL.Ask(ctx, nccl.Query, opened.Files, local) })
	}
	if len(out.Jobs) == 0 {
		at, _ := job.RASAddress(j.ras)
		out.NCCL = &job.NCCL{Asked: true, Address: at}
		out.NCCL.Ask(ctx, nccl.Query, opened.Files, nccl.Local{Addresses: addresses})
	}
	all.Wait()
	return nil
}
