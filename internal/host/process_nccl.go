package host

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// jobFilesTime limits the wait of a scan for the files of jobs: a home directory may be on a slow or unreachable file
// server.
const jobFilesTime = 200 * time.Millisecond

// jobReader reads the files of jobs, once per job, one after the other. Late results are used by the next scan.
type jobReader struct {
	files   func(job) (*jobFiles, error)
	timeout time.Duration // limit of the wait
	turns   *Turns
	wanted  []job // requested in this scan
	mu      *sync.Mutex
	done    map[int]jobResult // by process; guarded by mu
}

// job is a process with NCCL.
type job struct {
	pid       int
	start     string // PIDs are reused
	env       map[string]string
	uid, home string
}

type jobResult struct {
	start string
	files *jobFiles // nil: not readable
	err   error
}

func newJobReader(t *tree) jobReader {
	return jobReader{
		files: t.jobFiles, timeout: jobFilesTime, turns: NewTurns(), mu: &sync.Mutex{}, done: map[int]jobResult{},
	}
}

// request requests the files of a job, unless they have been read. Failed reads are retried.
func (r *jobReader) request(j job) {
	if files, _ := r.of(j.pid, j.start); files == nil {
		r.wanted = append(r.wanted, j)
	}
}

// of is the content of a job's files, or the error; both are nil while they have not been read.
func (r *jobReader) of(pid int, start string) (*jobFiles, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.done[pid]; found.start == start {
		return found.files, found.err
	}
	return nil, nil
}

// drop discards the files of a process.
func (r *jobReader) drop(pid int) { r.forget(func(other int) bool { return other == pid }) }

func (r *jobReader) forget(gone func(pid int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.done, func(pid int, _ jobResult) bool { return gone(pid) })
}

// read reads the requested files. It does not start while an earlier read is blocked by a file server.
func (r *jobReader) read(ctx context.Context) {
	jobs := r.wanted
	r.wanted = nil
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_ = r.turns.Do(ctx, "reading files of jobs", func() {
		for _, j := range jobs {
			files, err := r.files(j)
			r.mu.Lock()
			r.done[j.pid] = jobResult{j.start, files, err}
			r.mu.Unlock()
		}
	})
}

// jobFiles reads NCCL's settings as initEnv does (src/misc/param.cc), and the topology file that they name. The error
// is that of an existing file that cannot be read.
func (t *tree) jobFiles(j job) (*jobFiles, error) {
	root, err := t.rootOf(j.pid)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return readJobFiles(root, j.env, j.uid, j.home)
}
