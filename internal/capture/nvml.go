package capture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// What NVML tells is one entry for the driver and one for each GPU, by index, in lines "name: value".

const (
	nvmlSystemPath = "nvml/system"
	nvmlGPUDir     = "nvml/gpu"
	// Prefixes of lines that belong together.
	nvmlErrorLine  = "nvlink_errors_"
	nvmlFabricLine = "fabric_"
	nvmlRowsLine   = "rows_"
)

func nvmlGPUPath(index int) string { return fmt.Sprintf("%s/%d", nvmlGPUDir, index) }

// nvmlLine is a value of an entry: *string, *uint64, *bool, or **uint64 and **float64, which may be absent.
type nvmlLine struct {
	name  string
	value any
}

func nvmlSystemLines(v *snapshot.NVML) []nvmlLine {
	return []nvmlLine{{"driver", &v.Driver}, {"cuda", &v.CUDA}}
}

func nvmlGPULines(g *snapshot.GPU) []nvmlLine {
	out := []nvmlLine{
		{"uuid", &g.UUID},
		{"pci_address", &g.PCIAddress},
		{"model", &g.Model},
		{"serial", &g.Serial},
		{"compute_capability", &g.Capability},
		{"pcie_generation", &g.PCIeGeneration},
		{"pcie_max_generation", &g.PCIeMaxGeneration},
		{"pcie_width", &g.PCIeWidth},
		{"pcie_max_width", &g.PCIeMaxWidth},
		{"nvlinks", &g.NVLinks},
		{"nvlinks_up", &g.NVLinksUp},
		{"c2c_links", &g.C2CLinks},
		{"last_xid", &g.LastXID},
		{"recovery_action", &g.RecoveryAction},
		{"temperature", &g.Temperature},
		{"power", &g.Power},
		{"utilization", &g.Utilization},
		{"memory_used", &g.MemoryUsed},
		{"memory_total", &g.MemoryTotal},
		{"bar1_used", &g.BAR1Used},
		{"bar1_total", &g.BAR1Total},
		{"throttle", &g.Throttle},
	}
	for _, c := range nvmlCounters(g) {
		out = append(out, nvmlLine{c.name, c.value})
	}
	return out
}

// nvmlCounters are the values that only rise.
func nvmlCounters(g *snapshot.GPU) []field {
	return []field{
		{"pcie_transmit_bytes", &g.PCIeTransmit, false},
		{"pcie_receive_bytes", &g.PCIeReceive, false},
		{"pcie_replays", &g.PCIeReplays, false},
		{"nvlink_transmit_bytes", &g.NVLinkTransmit, false},
		{"nvlink_receive_bytes", &g.NVLinkReceive, false},
		{"xid_events", &g.XIDs, false},
	}
}

func nvmlFabricLines(f *snapshot.GPUFabric) []nvmlLine {
	return []nvmlLine{
		{nvmlFabricLine + "state", &f.State},
		{nvmlFabricLine + "status", &f.Status},
		{nvmlFabricLine + "health", &f.Health},
		{nvmlFabricLine + "summary", &f.Summary},
		{nvmlFabricLine + "cluster", &f.Cluster},
		{nvmlFabricLine + "clique", &f.Clique},
	}
}

func nvmlRowsLines(r *snapshot.RemappedRows) []nvmlLine {
	return []nvmlLine{
		{nvmlRowsLine + "correctable", &r.Correctable},
		{nvmlRowsLine + "uncorrectable", &r.Uncorrectable},
		{nvmlRowsLine + "pending", &r.Pending},
		{nvmlRowsLine + "failed", &r.Failed},
	}
}

// text is the value; false where it is absent.
func (l nvmlLine) text() (string, bool) {
	switch v := l.value.(type) {
	case *string:
		return *v, *v != ""
	case *uint64:
		return strconv.FormatUint(*v, 10), true
	case *bool:
		return strconv.FormatBool(*v), true
	case **uint64:
		if *v != nil {
			return strconv.FormatUint(**v, 10), true
		}
	case **float64:
		if *v != nil {
			return strconv.FormatFloat(**v, 'f', -1, 64), true
		}
	}
	return "", false
}

// parse takes a value.
func (l nvmlLine) parse(s string) (err error) {
	switch v := l.value.(type) {
	case *string:
		*v = s
	case *uint64:
		*v, err = strconv.ParseUint(s, 10, 64)
	case *bool:
		*v, err = strconv.ParseBool(s)
	case **uint64:
		*v = new(uint64)
		**v, err = strconv.ParseUint(s, 10, 64)
	case **float64:
		*v = new(float64)
		**v, err = strconv.ParseFloat(s, 64)
	}
	return err
}

func encodeNVML(of ...nvmlLine) []byte {
	var b bytes.Buffer
	for _, l := range of {
		if s, ok := l.text(); ok {
			fmt.Fprintf(&b, "%s: %s\n", l.name, s)
		}
	}
	return b.Bytes()
}

func encodeGPU(g snapshot.GPU) []byte {
	of := nvmlGPULines(&g)
	for i := range g.NVLinkErrors {
		of = append(of, nvmlLine{nvmlErrorLine + g.NVLinkErrors[i].Name, &g.NVLinkErrors[i].Value})
	}
	if g.Fabric != nil {
		of = append(of, nvmlFabricLines(g.Fabric)...)
	}
	if g.RemappedRows != nil {
		of = append(of, nvmlRowsLines(g.RemappedRows)...)
	}
	return encodeNVML(of...)
}

// decodeNVML takes the lines that it knows.
func decodeNVML(path string, data []byte, of []nvmlLine, other func(name, value string) error) error {
	return lines(path, data, func(name, value string) error {
		for _, l := range of {
			if l.name == name {
				return l.parse(value)
			}
		}
		return other(name, value)
	})
}

func decodeGPU(path string, data []byte) (g snapshot.GPU, err error) {
	var fabric snapshot.GPUFabric
	var rows snapshot.RemappedRows
	of := slices.Concat(nvmlGPULines(&g), nvmlFabricLines(&fabric), nvmlRowsLines(&rows))
	err = decodeNVML(path, data, of, func(name, value string) error {
		kind, ok := strings.CutPrefix(name, nvmlErrorLine)
		if !ok {
			return nil
		}
		n, err := strconv.ParseUint(value, 10, 64)
		g.NVLinkErrors = append(g.NVLinkErrors, snapshot.Stat{Name: kind, Value: n})
		return err
	})
	if hasLine(data, nvmlFabricLine) {
		g.Fabric = &fabric
	}
	if hasLine(data, nvmlRowsLine) {
		g.RemappedRows = &rows
	}
	return g, err
}

func hasLine(data []byte, prefix string) bool {
	return bytes.HasPrefix(data, []byte(prefix)) || bytes.Contains(data, []byte("\n"+prefix))
}

// ReadGPUs records all figures, whatever is asked for.
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

// WatchGPUs records nothing: readings have the counts.
func (r *Recorder) WatchGPUs(ctx context.Context) error { return r.inner.GPUs.WatchGPUs(ctx) }

// ReleaseGPUs records nothing.
func (r *Recorder) ReleaseGPUs(ctx context.Context, d time.Duration) error {
	return r.inner.GPUs.ReleaseGPUs(ctx, d)
}

// GPUsReleased records nothing.
func (r *Recorder) GPUsReleased() time.Duration { return r.inner.GPUs.GPUsReleased() }

// ReadGPUs gives the recorded answers; their counters go on.
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
	p.goOn(path, nvmlCounters(&g))
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range g.NVLinkErrors {
		e := &g.NVLinkErrors[i]
		e.Value += p.onward(path + "/" + nvmlErrorLine + e.Name)
	}
	return g, nil
}

// countGPU notes the counters of an entry.
func (p *Player) countGPU(e Entry) {
	g, err := decodeGPU(e.Path, e.Data)
	if err != nil {
		return
	}
	for _, c := range nvmlCounters(&g) {
		if *c.value != nil {
			p.step(e.Path+"/"+c.name, **c.value)
		}
	}
	for _, s := range g.NVLinkErrors {
		p.step(e.Path+"/"+nvmlErrorLine+s.Name, s.Value)
	}
}

// WatchGPUs has nothing to listen to.
func (p *Player) WatchGPUs(context.Context) error { return nil }

// ReleaseGPUs has nothing to let go of.
func (p *Player) ReleaseGPUs(context.Context, time.Duration) error {
	return fmt.Errorf("a replay holds no GPU: %w", syscall.EOPNOTSUPP)
}

// GPUsReleased is never.
func (p *Player) GPUsReleased() time.Duration { return 0 }

var (
	nvmlGPUEntry = regexp.MustCompile(`^` + nvmlGPUDir + `/[0-9]+$`)
	uuidPattern  = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	// gpuUUIDPattern is a UUID of a GPU or of a part of one wherever it is told: /proc/driver/nvidia/gpus/ADDRESS/information has it too.
	gpuUUIDPattern = regexp.MustCompile(`\b(?:GPU|MIG)-` + uuidPattern.String()[2:])
)

func isGPU(name string) bool { return nvmlGPUEntry.MatchString(name) }

// collectGPUs adds the UUIDs of GPUs and of their NVLink domains, and the serial numbers of boards.
func collectGPUs(a *Archive, uuids, serials map[string]bool) {
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			for _, u := range gpuUUIDPattern.FindAllString(string(e.Data), -1) {
				uuids[u[4:]] = true
			}
			if e.Kind != File || !isGPU(e.Path) {
				continue
			}
			g, err := decodeGPU(e.Path, e.Data)
			if err != nil {
				continue
			}
			if g.Serial != "" {
				serials[g.Serial] = true
			}
			if g.Fabric != nil && g.Fabric.Cluster != "" {
				uuids[g.Fabric.Cluster] = true
			}
		}
	}
}

// numberUUIDs gives each a number in their order.
func numberUUIDs(uuids map[string]bool) map[string]string {
	var list []string
	for u := range uuids {
		list = append(list, u)
	}
	slices.Sort(list)
	out := map[string]string{}
	for i, u := range list {
		out[u] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i+1)
	}
	return out
}

// gpu replaces the UUIDs and the serial number in an entry of a GPU; one that cannot be understood is left out.
func (p *pseudonyms) gpu(name string, data []byte) []byte {
	g, err := decodeGPU(name, data)
	if err != nil {
		return nil
	}
	g.UUID = p.gpuUUIDs(g.UUID)
	g.Serial = p.serials[g.Serial]
	if g.Fabric != nil {
		g.Fabric.Cluster = p.uuids[g.Fabric.Cluster]
	}
	return encodeGPU(g)
}

// gpuUUIDs replaces the UUIDs of GPUs in a text.
func (p *pseudonyms) gpuUUIDs(s string) string {
	return gpuUUIDPattern.ReplaceAllStringFunc(s, func(u string) string { return u[:4] + or(p.uuids[u[4:]], u[4:]) })
}
