package capture

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// ReadGPUs always records all figures.
func (r *Recorder) ReadGPUs(ctx context.Context, _ bool) (snapshot.NVML, []error, error) {
	v, errs, err := r.inner.GPUs.ReadGPUs(ctx, true)
	r.answer(nvmlSystemPath, encodeNVML(nvmlSystemLines(&v)...), err)
	if err != nil {
		return v, errs, err
	}
	names := []string{}
	for _, g := range v.GPUs {
		r.answer(nvmlGPUPath(g.Index), encodeGPU(g), nil)
		names = append(names, strconv.Itoa(g.Index))
	}
	slices.Sort(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[nvmlGPUDir] = names
	return v, errs, nil
}

// WatchGPUs records nothing: the readings contain the counts.
func (r *Recorder) WatchGPUs(ctx context.Context) error { return r.inner.GPUs.WatchGPUs(ctx) }

// ReleaseGPUs records nothing.
func (r *Recorder) ReleaseGPUs(ctx context.Context, d time.Duration, by string) error {
	return r.inner.GPUs.ReleaseGPUs(ctx, d, by)
}

// GPUsReleased records nothing.
func (r *Recorder) GPUsReleased() *snapshot.GPURelease { return r.inner.GPUs.GPUsReleased() }

// ReadGPUs returns the recorded answers.
func (p *Player) ReadGPUs(context.Context, bool) (v snapshot.NVML, errs []error, err error) {
	b, err := p.Read(nvmlSystemPath, nil)
	if err != nil {
		return v, nil, err
	}
	if err := decodeNVML(nvmlSystemPath, b, nvmlSystemLines(&v), func(string, string) error { return nil }); err != nil {
		return v, nil, err
	}
	names, err := p.List(nvmlGPUDir)
	if err != nil && !host.IsAbsent(err) {
		return v, nil, err
	}
	for _, name := range names {
		g, err := p.gpu(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		v.GPUs = append(v.GPUs, g)
	}
	slices.SortFunc(v.GPUs, func(a, b snapshot.GPU) int { return cmp.Compare(a.Index, b.Index) })
	return v, errs, nil
}

func (p *Player) gpu(name string) (snapshot.GPU, error) {
	path := nvmlGPUDir + "/" + name
	b, err := p.Read(path, nil)
	if err != nil {
		return snapshot.GPU{}, err
	}
	g, err := decodeGPU(path, b)
	if err != nil {
		return g, err
	}
	if g.Index, err = strconv.Atoi(name); err != nil {
		return g, host.ErrGarbled(path, []byte(name))
	}
	return g, nil
}

// WatchGPUs does nothing in a replay.
func (p *Player) WatchGPUs(context.Context) error { return nil }

// ReleaseGPUs is not supported in a replay.
func (p *Player) ReleaseGPUs(context.Context, time.Duration, string) error {
	return fmt.Errorf("a replay holds no GPU: %w", syscall.EOPNOTSUPP)
}

// GPUsReleased is always nil.
func (p *Player) GPUsReleased() *snapshot.GPURelease { return nil }
