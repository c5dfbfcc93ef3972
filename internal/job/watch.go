package job

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/command"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/words"
)

const (
	watchInterval = 5 * time.Minute  // interval of asking about a job
	answerValid   = 15 * time.Minute // of an answer
)

// Watch asks NCCL's RAS service about a job while one of its ports has an alert, on the host of its rank 0: the other
// hosts would get the same answer. It asks in the background, about one job at a time: a round does not wait for it.
// Nil: disabled.
type Watch struct {
	paths rooted.Paths
	query ncclQuery
	log   *slog.Logger
	all   sync.WaitGroup

	mu      sync.Mutex
	busy    bool
	asked   map[string]time.Time // by job
	answers map[string]answer
}

// answer is what NCCL has reported about a job.
type answer struct {
	at   time.Time
	text string
}

// NewWatch asks the services of the jobs on this host.
func NewWatch(paths rooted.Paths, log *slog.Logger) *Watch {
	return &Watch{paths: paths, query: nccl.Query, log: log, asked: map[string]time.Time{}, answers: map[string]answer{}}
}

// Note takes the alerts of a round. Queries end with ctx.
func (w *Watch) Note(ctx context.Context, n *snapshot.Node, alerts []alerting.Alert, now time.Time) {
	if w == nil || n == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.asked, func(_ string, at time.Time) bool { return now.Sub(at) >= watchInterval })
	maps.DeleteFunc(w.answers, func(_ string, s answer) bool { return now.Sub(s.at) >= answerValid })
	if w.busy || len(alerts) == 0 {
		return
	}
	rows := Rows(n)
	for i := range rows {
		r := &rows[i]
		if _, recently := w.asked[r.Key()]; recently || !r.hasFirstRank() || !r.hasAlert(alerts) {
			continue
		}
		w.busy, w.asked[r.Key()] = true, now
		w.all.Go(func() {
			text := ""
			err := access.Guard(func() error { // the answer is foreign data
				text = w.ask(ctx, r)
				return nil
			})
			command.LogError(w.log, "cannot ask NCCL", err)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.busy = false; text != "" {
				w.answers[r.Key()] = answer{now, text}
			}
		})
		return
	}
}

// ask is empty without an answer, which is logged.
func (w *Watch) ask(ctx context.Context, r *Row) string {
	opened, err := live.Open(w.paths)
	if err != nil {
		w.log.Warn("cannot ask NCCL", "job", r.Key(), "err", err)
		return ""
	}
	defer opened.Close()
	addresses := HostAddresses()
	word := r.Plan(opened.Files, "", addresses)
	if word.Asked {
		word.Ask(ctx, w.query, opened.Files, nccl.Local{PIDs: r.PIDs(opened.Files), Addresses: addresses})
	}
	if word.Answer == nil {
		w.log.Debug("no answer of NCCL", "job", r.Key(), "reason", word.Why)
		return ""
	}
	return word.short(time.Now())
}

// Input adds the answers to a report.
func (w *Watch) Input(in *check.Input) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	in.NCCL = map[string]string{}
	for job, s := range w.answers {
		in.NCCL[job] = s.text
	}
}

// Wait returns when no query is in progress.
func (w *Watch) Wait() {
	if w != nil {
		w.all.Wait()
	}
}

// rankNames are the variables with the rank of a process, in the order of preference: torchrun, Open MPI, srun.
var rankNames = []string{"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}

// hasFirstRank reports whether the process with rank 0 of the job is on this host.
func (r *Row) hasFirstRank() bool {
	return slices.ContainsFunc(r.Processes, func(p Process) bool {
		for _, name := range rankNames {
			if rank, ok := p.process.Env[name]; ok {
				return rank == "0" && p.process.HasNCCL
			}
		}
		return false
	})
}

// hasAlert reports whether an alert concerns the job or a port of it.
func (r *Row) hasAlert(alerts []alerting.Alert) bool {
	return slices.ContainsFunc(alerts, func(a alerting.Alert) bool {
		return a.Labels["severity"] != "none" && a.Labels["device"]+a.Labels["job_id"] != "" && r.Uses(a.Labels)
	})
}

// short returns an answer in one line.
func (w *NCCL) short(at time.Time) string {
	const shown = 3 // communicators, and problems
	a := w.Answer
	parts := []string{}
	for _, g := range a.Communicators[:min(shown, len(a.Communicators))] {
		state := cmp.Or(strings.Join(g.Errors, ", "), "OK")
		parts = append(parts, fmt.Sprintf("%s of %s %s, %s",
			words.Count(g.Communicators, "communicator"), words.Count(g.Ranks, "rank"), g.Status, state))
	}
	for i := range a.Problems[:min(shown, len(a.Problems))] {
		parts = append(parts, Problem(&a.Problems[i]))
	}
	if len(a.Communicators) > shown || len(a.Problems) > shown {
		parts = append(parts, "…")
	}
	who := ""
	if !w.Verified {
		who = ", not verified to be this job"
	}
	return fmt.Sprintf("%s at %s%s: %s (evidence only).",
		a.NCCL, at.UTC().Format("15:04:05 UTC"), who, strings.Join(parts, "; "))
}
