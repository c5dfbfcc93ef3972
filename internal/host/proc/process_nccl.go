package proc

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
)

// jobFilesTime limits the wait of a scan for the files of jobs: a home directory may be on a slow or unreachable file
// server.
const jobFilesTime = 200 * time.Millisecond

// Reads at a time: a file on a dead file server holds a thread until the server returns, and the helper has 64
// (TasksMax=). Nobody takes the reads of others.
const (
	readsOfJob  = 2
	readsOfUser = 8
	readsOfAll  = 32
)

// jobReader reads the files of jobs, once per process, each in a turn of its own: one that blocks costs the settings of
// that process only. Late results are used by the next scan.
type jobReader struct {
	files   func(job) (*jobFiles, error)
	nodes   func(pid int) deviceNodes
	timeout time.Duration // limit of the wait
	wanted  []job         // requested in this scan
	mu      *sync.Mutex
	queue   []job             // that wait for their turn; guarded by mu
	reading []job             // that have not returned; guarded by mu
	done    map[int]jobResult // by process; guarded by mu
}

// job is a process with a communication library.
type job struct {
	pid   int
	start string // PIDs are reused
	of    string // the job, container or unit that it belongs to, else the process
	env   map[string]string
	who   credentials
	home  string
	// nodesOnly: it has no NCCL, so that only its device nodes are read.
	nodesOnly bool
	ended     chan<- struct{} // has room
}

type jobResult struct {
	start string
	files *jobFiles // nil: not readable
	nodes deviceNodes
	err   error
}

func newJobReader(t *rooted.Tree) jobReader {
	return jobReader{
		files:   func(j job) (*jobFiles, error) { return openJobFiles(t, j) },
		nodes:   func(pid int) deviceNodes { return openDeviceNodes(t, pid) },
		timeout: jobFilesTime,
		mu:      &sync.Mutex{},
		done:    map[int]jobResult{},
	}
}

// request requests the files of a job, unless they have been read. Failed reads are retried.
func (r *jobReader) request(j job) {
	if files, _, _ := r.of(j.pid, j.start); files == nil || files.conf == nil && !j.nodesOnly {
		r.wanted = append(r.wanted, j)
	}
}

// of returns the content of a job's files, or the error; both are nil while they have not been read. The nodes are
// known also with an error.
func (r *jobReader) of(pid int, start string) (*jobFiles, deviceNodes, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.done[pid]; found.start == start {
		return found.files, found.nodes, found.err
	}
	return nil, deviceNodes{}, nil
}

// drop discards the files of a process.
func (r *jobReader) drop(pid int) { r.forget(func(other int) bool { return other == pid }) }

func (r *jobReader) forget(gone func(pid int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.done, func(pid int, _ jobResult) bool { return gone(pid) })
}

// read reads the requested files, and waits for them. Reads of earlier scans that have not returned are not repeated.
func (r *jobReader) read(ctx context.Context) {
	jobs := r.wanted
	r.wanted = nil
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ended := make(chan struct{}, len(jobs))
	for range r.enqueue(jobs, ended) {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// enqueue replaces the queue by the jobs that are not being read, and returns their number.
func (r *jobReader) enqueue(jobs []job, ended chan<- struct{}) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = nil
	for _, j := range jobs {
		if !slices.ContainsFunc(r.reading, j.same) {
			j.ended = ended
			r.queue = append(r.queue, j)
		}
	}
	queued := len(r.queue)
	r.advance()
	return queued
}

func (j job) same(other job) bool { return j.pid == other.pid && j.start == other.start }

// advance begins the reads that are within the limits. The caller holds mu.
func (r *jobReader) advance() {
	r.queue = slices.DeleteFunc(r.queue, func(j job) bool {
		ofJob, ofUser := 0, 0
		for _, other := range r.reading {
			if other.who.uid == j.who.uid {
				ofUser++
				if other.of == j.of {
					ofJob++
				}
			}
		}
		if ofJob >= readsOfJob || ofUser >= readsOfUser || len(r.reading) >= readsOfAll {
			return false
		}
		r.reading = append(r.reading, j)
		go r.turn(j)
		return true
	})
}

// turn reads the files of one process.
func (r *jobReader) turn(j job) {
	var files *jobFiles
	var nodes deviceNodes
	err := access.Guard(func() (err error) {
		nodes = r.nodes(j.pid)
		files, err = r.files(j)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[j.pid] = jobResult{j.start, files, nodes, err}
	r.reading = slices.DeleteFunc(r.reading, j.same)
	r.advance()
	j.ended <- struct{}{}
}

// jobFiles reads the files of a job below the root directory of its process.
func openJobFiles(t *rooted.Tree, j job) (*jobFiles, error) {
	if j.nodesOnly {
		return &jobFiles{}, nil
	}
	root, err := rootOf(t, j.pid)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return readJobFiles(root, j)
}
