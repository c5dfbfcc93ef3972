package host

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// jobFilesTime bounds the wait of a look for the files of jobs: a home may be on a file server that is slow, or away.
const jobFilesTime = 200 * time.Millisecond

// jobReader reads the files of jobs, each job's once in its life, one after the other. What comes late is there at the next look.
type jobReader struct {
	files    func(job) (*jobFiles, error)
	patience time.Duration // of a look
	lanes    *Lanes
	wanted   []job // at this look
	mu       *sync.Mutex
	done     map[int]jobResult // by process; guarded by mu
}

// job is a process with NCCL, by which its files are found.
type job struct {
	pid       int
	start     string // numbers are used again
	env       map[string]string
	uid, home string
}

type jobResult struct {
	start string
	files *jobFiles // nil: they cannot be read
	err   error
}

func newJobReader(t *tree) jobReader {
	return jobReader{files: t.jobFiles, patience: jobFilesTime, lanes: NewLanes(), mu: &sync.Mutex{}, done: map[int]jobResult{}}
}

// want asks for the files of a job, unless they are there. Those that could not be read are tried again.
func (r *jobReader) want(j job) {
	if files, _ := r.of(j.pid, j.start); files == nil {
		r.wanted = append(r.wanted, j)
	}
}

// of is what the files of a job say, or why they cannot be read; both are nil while they are not read.
func (r *jobReader) of(pid int, start string) (*jobFiles, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.done[pid]; found.start == start {
		return found.files, found.err
	}
	return nil, nil
}

// drop forgets what the files of a process say.
func (r *jobReader) drop(pid int) { r.forget(func(other int) bool { return other == pid }) }

func (r *jobReader) forget(gone func(pid int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.done, func(pid int, _ jobResult) bool { return gone(pid) })
}

// read reads what is asked for. While it has not come back from a file server it is not begun again.
func (r *jobReader) read(ctx context.Context) {
	jobs := r.wanted
	r.wanted = nil
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	_ = r.lanes.Do(ctx, "files of jobs", func() {
		for _, j := range jobs {
			files, err := r.files(j)
			r.mu.Lock()
			r.done[j.pid] = jobResult{j.start, files, err}
			r.mu.Unlock()
		}
	})
}

// jobFiles reads NCCL's settings as initEnv does (src/misc/param.cc), and the topology that they name. An error is that of a file that
// is there and cannot be read.
func (t *tree) jobFiles(j job) (*jobFiles, error) {
	root, err := t.rootOf(j.pid)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return readJobFiles(root, j.env, j.uid, j.home)
}
