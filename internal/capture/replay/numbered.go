package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
)

// GPUs and processes are one entry each, named by their number.

// recordNumbered records all of a directory.
func recordNumbered[T any](r *Recorder, dir string, all []T, number func(T) int) {
	names := []string{}
	for _, one := range all {
		name := strconv.Itoa(number(one))
		r.answer(dir+"/"+name, answer.Encode(one), nil)
		names = append(names, name)
	}
	slices.Sort(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[dir] = names
}

// replayNumbered returns all of a directory in order of their numbers, and the errors of those that cannot be decoded.
func replayNumbered[T any](p *Player, dir string, number func(*T) *int) (all []T, errs []error, err error) {
	names, err := p.List(dir)
	if err != nil && !access.IsAbsent(err) {
		return nil, nil, err
	}
	for _, name := range names {
		path := dir + "/" + name
		one, err := answerOf[T](p, path)
		if err == nil {
			if *number(&one), err = strconv.Atoi(name); err != nil {
				err = access.ErrGarbled(path, []byte(name))
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(*number(&a), *number(&b)) })
	return all, errs, nil
}

// Processes records one entry per process.
func (r *Recorder) Processes(ctx context.Context, first []int, only bool) ([]accel.Process, bool, error) {
	found, refused, err := r.inner.Processes.Processes(ctx, first, only)
	r.mu.Lock()
	known := r.known(answer.ProcessDir)
	r.mu.Unlock()
	if err == nil && (known || len(found) > 0) {
		recordNumbered(r, answer.ProcessDir, found, func(p accel.Process) int { return p.PID })
	}
	return found, refused, err
}

// Processes returns the recorded processes.
func (p *Player) Processes(context.Context, []int, bool) ([]accel.Process, bool, error) {
	found, errs, err := replayNumbered(p, answer.ProcessDir, func(p *accel.Process) *int { return &p.PID })
	if len(errs) > 0 {
		return nil, false, errs[0]
	}
	return found, false, err
}

// ReadGPUs always records all figures.
func (r *Recorder) ReadGPUs(ctx context.Context, _ bool) (accel.NVML, []error, error) {
	v, errs, err := r.inner.GPUs.ReadGPUs(ctx, true)
	r.answer(answer.NVMLSystemPath, answer.Encode(v), err)
	if err == nil {
		recordNumbered(r, answer.NVMLGPUDir, v.GPUs, func(g accel.GPU) int { return g.Index })
	}
	return v, errs, err
}

// ReadGPUs returns the recorded answers.
func (p *Player) ReadGPUs(context.Context, bool) (v accel.NVML, errs []error, err error) {
	if v, err = answerOf[accel.NVML](p, answer.NVMLSystemPath); err == nil {
		v.GPUs, errs, err = replayNumbered(p, answer.NVMLGPUDir, func(g *accel.GPU) *int { return &g.Index })
	}
	return v, errs, err
}

// WatchGPUs records nothing: the readings contain the counts.
func (r *Recorder) WatchGPUs(ctx context.Context) error { return r.inner.GPUs.WatchGPUs(ctx) }

// WatchGPUs does nothing in a replay.
func (p *Player) WatchGPUs(context.Context) error { return nil }

// ReleaseGPUs records nothing.
func (r *Recorder) ReleaseGPUs(ctx context.Context, d time.Duration, by string) error {
	return r.inner.GPUs.ReleaseGPUs(ctx, d, by)
}

// ReleaseGPUs is not supported in a replay.
func (p *Player) ReleaseGPUs(context.Context, time.Duration, string) error {
	return fmt.Errorf("a replay holds no GPU: %w", syscall.EOPNOTSUPP)
}

// GPUsReleased records nothing.
func (r *Recorder) GPUsReleased() *accel.GPURelease { return r.inner.GPUs.GPUsReleased() }

// GPUsReleased is always nil.
func (p *Player) GPUsReleased() *accel.GPURelease { return nil }
