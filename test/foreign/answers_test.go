package foreign_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/qp"
	"rdma_exporter/internal/transceiver"
)

// spoil returns an answer in which each text has the hostile one of its field at its end.
func spoil[T any](m *marks, name string) func(T, error) (T, error) {
	return func(v T, err error) (T, error) {
		m.fill(reflect.ValueOf(&v).Elem(), name)
		return v, err
	}
}

func (m *marks) fill(v reflect.Value, name string) { m.fillAll(v, name, keptFields) }

func (m *marks) fillAll(v reflect.Value, name string, kept map[string]string) {
	switch v.Kind() {
	case reflect.String:
		if m.inert != "" {
			v.SetString(m.instead(name, v.String(), kept))
		} else if kept[name] == "" && (v.Len() > 0 || !slices.Contains(emptyStays, name)) {
			v.SetString(v.String() + m.payload(name))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			m.fillAll(v.Elem(), name, kept)
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.fillAll(v.Index(i), name+"[]", kept)
		}
		if n := v.Len(); n > 0 && slices.Contains(more, name) && name != m.whole {
			v.Set(reflect.Append(v, v.Index(n-1)))
			m.fillAll(v.Index(n), name+"[]", nil)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			text := reflect.New(v.Type().Elem()).Elem()
			text.Set(v.MapIndex(key))
			m.fillAll(text, name+"[]", kept)
			v.SetMapIndex(key, text)
		}
		if !v.IsNil() && v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(m.payload(name+" key")), reflect.ValueOf("1"))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				m.fillAll(v.Field(i), fieldName(name, f), kept)
			}
		}
	}
}

// instead returns a text with the harmless one at its end, or that one alone; a field that is kept has its own text
// each second time.
func (m *marks) instead(name, text string, kept map[string]string) string {
	m.of(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn[name]++
	switch n := m.turn[name]; {
	case kept[name] != "" && n%2 == 0:
		return text
	case kept[name] != "" || n/2%2 == 0:
		return m.inert
	}
	return text + " " + m.inert
}

func fieldName(name string, f reflect.StructField) string {
	if f.Anonymous {
		return name
	}
	return name + "." + f.Name
}

// textsOf returns the names that fill gives to the texts of a type.
func textsOf(t reflect.Type, name string) (out []string) {
	switch t.Kind() {
	case reflect.String:
		return []string{name}
	case reflect.Pointer:
		return textsOf(t.Elem(), name)
	case reflect.Slice:
		return textsOf(t.Elem(), name+"[]")
	case reflect.Map:
		return append(textsOf(t.Elem(), name+"[]"), name+" key")
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				out = append(out, textsOf(f.Type, fieldName(name, f))...)
			}
		}
	}
	return out
}

// answerTexts returns the names of all texts in answers of a host, by its interfaces. Texts in files are those of the
// archive.
func answerTexts() (out []string) {
	of := reflect.TypeFor[host.Host]()
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Type.Kind() != reflect.Interface || f.Name == "Files" {
			continue
		}
		for j := range f.Type.NumMethod() {
			method := f.Type.Method(j)
			for k := range method.Type.NumOut() {
				out = append(out, textsOf(method.Type.Out(k), answerName(f.Name, method.Name))...)
			}
		}
	}
	return out
}

func answerName(source, method string) string {
	return strings.TrimSuffix(source+"."+strings.TrimSuffix(method, source), ".")
}

// around replaces the answers of a host. The types do not embed what they wrap, so that a new request does not compile
// until it is spoiled.
func (m *marks) around(h *host.Host) {
	h.RDMA, h.Ethtool, h.Devlink, h.DCB = rdma{
		h.RDMA,
		m,
	}, ethtool{
		h.Ethtool,
		m,
	}, devlink{
		h.Devlink,
		m,
	}, dcbAnswers{
		h.DCB,
		m,
	}
	h.GPUs, h.Processes, h.Launchers = gpus{h.GPUs, m}, processes{h.Processes, m}, launchers{h.Launchers, m}
	h.Tracer, h.KernelLog, h.Subnet = tracer{h.Tracer, m}, kernelLog{h.KernelLog, m}, subnet{h.Subnet, m}
	if h.Pods != nil {
		h.Pods = pods{h.Pods, m}
	}
}

type rdma struct {
	of host.RDMA
	m  *marks
}

func (x rdma) Port(ctx context.Context, device string, port int) (host.RDMAPort, error) {
	return spoil[host.RDMAPort](x.m, "RDMA.Port")(x.of.Port(ctx, device, port))
}

func (x rdma) System(ctx context.Context) (host.RDMASystem, error) {
	return spoil[host.RDMASystem](x.m, "RDMA.System")(x.of.System(ctx))
}

func (x rdma) Stats(ctx context.Context, device string, port int, buf []host.Stat) ([]host.Stat, error) {
	return spoil[[]host.Stat](x.m, "RDMA.Stats")(x.of.Stats(ctx, device, port, buf))
}

func (x rdma) Holders(ctx context.Context, device string, qps bool) ([]host.RDMAHolder, error) {
	return spoil[[]host.RDMAHolder](x.m, "RDMA.Holders")(x.of.Holders(ctx, device, qps))
}

func (x rdma) QueuePairs(ctx context.Context, device string) ([]qp.QueuePair, error) {
	return spoil[[]qp.QueuePair](x.m, "RDMA.QueuePairs")(x.of.QueuePairs(ctx, device))
}

func (x rdma) Connections(ctx context.Context, device string) ([]qp.Connection, error) {
	return spoil[[]qp.Connection](x.m, "RDMA.Connections")(x.of.Connections(ctx, device))
}

type ethtool struct {
	of host.Ethtool
	m  *marks
}

func (x ethtool) LinkModes(ctx context.Context, netdev string) (host.LinkModes, error) {
	return spoil[host.LinkModes](x.m, "Ethtool.LinkModes")(x.of.LinkModes(ctx, netdev))
}

// ModuleEEPROM spoils the texts of a module: 8 printable bytes and more.
func (x ethtool) ModuleEEPROM(ctx context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	b, err := x.of.ModuleEEPROM(ctx, netdev, ref)
	for i, n := 0, 0; i <= len(b); i++ {
		if i < len(b) && b[i] >= ' ' && b[i] <= '~' {
			n++
			continue
		}
		if n >= 8 {
			copy(b[i-n:i], x.m.short("Ethtool.ModuleEEPROM"))
		}
		n = 0
	}
	return b, err
}

func (x ethtool) LinkState(ctx context.Context, netdev string) (host.LinkState, error) {
	return spoil[host.LinkState](x.m, "Ethtool.LinkState")(x.of.LinkState(ctx, netdev))
}

func (x ethtool) Pause(ctx context.Context, netdev string) (host.Pause, error) {
	return spoil[host.Pause](x.m, "Ethtool.Pause")(x.of.Pause(ctx, netdev))
}

func (x ethtool) FEC(ctx context.Context, netdev string) (host.FEC, error) {
	return spoil[host.FEC](x.m, "Ethtool.FEC")(x.of.FEC(ctx, netdev))
}

func (x ethtool) NetdevStats(ctx context.Context, netdev string) ([]host.Stat, error) {
	return spoil[[]host.Stat](x.m, "Ethtool.NetdevStats")(x.of.NetdevStats(ctx, netdev))
}

func (x ethtool) StandardStats(ctx context.Context, netdev string) ([]host.Stat, error) {
	return spoil[[]host.Stat](x.m, "Ethtool.StandardStats")(x.of.StandardStats(ctx, netdev))
}

type devlink struct {
	of host.Devlink
	m  *marks
}

func (x devlink) Health(ctx context.Context) ([]host.HealthReporter, error) {
	return spoil[[]host.HealthReporter](x.m, "Devlink.Health")(x.of.Health(ctx))
}

type dcbAnswers struct {
	of host.DCB
	m  *marks
}

func (x dcbAnswers) IEEE(ctx context.Context, netdev string) (dcb.Config, error) {
	return spoil[dcb.Config](x.m, "DCB.IEEE")(x.of.IEEE(ctx, netdev))
}

type gpus struct {
	of host.GPUs
	m  *marks
}

func (x gpus) ReadGPUs(ctx context.Context, full bool) (accel.NVML, []error, error) {
	v, errs, err := x.of.ReadGPUs(ctx, full)
	v, err = spoil[accel.NVML](x.m, "GPUs.Read")(v, err)
	return v, errs, err
}

func (x gpus) WatchGPUs(ctx context.Context) error { return x.of.WatchGPUs(ctx) }

func (x gpus) ReleaseGPUs(ctx context.Context, d time.Duration, by string) error {
	return x.of.ReleaseGPUs(ctx, d, by)
}

func (x gpus) GPUsReleased() *accel.GPURelease { return x.of.GPUsReleased() }

type processes struct {
	of host.Processes
	m  *marks
}

func (x processes) Processes(ctx context.Context, first []int, only bool) ([]accel.Process, bool, error) {
	found, refused, err := x.of.Processes(ctx, first, only)
	found, err = spoil[[]accel.Process](x.m, "Processes")(found, err)
	return found, refused, err
}

type launchers struct {
	of host.Launchers
	m  *marks
}

func (x launchers) Launchers(ctx context.Context, names []string) ([]hostdata.Launcher, bool, error) {
	found, whole, err := x.of.Launchers(ctx, names)
	found, err = spoil[[]hostdata.Launcher](x.m, "Launchers")(found, err)
	return found, whole, err
}

type tracer struct {
	of host.Tracer
	m  *marks
}

func (x tracer) Trace(ctx context.Context) error { return x.of.Trace(ctx) }

func (x tracer) Traced(ctx context.Context) (accel.Trace, error) {
	return spoil[accel.Trace](x.m, "Tracer.Traced")(x.of.Traced(ctx))
}

func (x tracer) Pairs(ctx context.Context, after uint64) (qp.Pairs, error) {
	return spoil[qp.Pairs](x.m, "Tracer.Pairs")(x.of.Pairs(ctx, after))
}

func (x tracer) MayTrace() bool { return x.of.MayTrace() }

type kernelLog struct {
	of host.KernelLog
	m  *marks
}

func (x kernelLog) KernelLog(ctx context.Context) (host.KernelLogReading, error) {
	return spoil[host.KernelLogReading](x.m, "KernelLog")(x.of.KernelLog(ctx))
}

type subnet struct {
	of host.Subnet
	m  *marks
}

func (x subnet) Ends(ctx context.Context, device string, port int) (host.IBLink, error) {
	return spoil[host.IBLink](x.m, "Subnet.Ends")(x.of.Ends(ctx, device, port))
}

func (x subnet) Counters(ctx context.Context, device string, port int, a *host.Agent) (host.IBCounters, error) {
	return spoil[host.IBCounters](x.m, "Subnet.Counters")(x.of.Counters(ctx, device, port, a))
}

func (x subnet) PortFEC(ctx context.Context, device string, port int, a *host.Agent) (host.IBFEC, error) {
	return spoil[host.IBFEC](x.m, "Subnet.PortFEC")(x.of.PortFEC(ctx, device, port, a))
}

func (x subnet) PortSettings(ctx context.Context, device string, port int) (host.IBPortSettings, error) {
	return spoil[host.IBPortSettings](x.m, "Subnet.PortSettings")(x.of.PortSettings(ctx, device, port))
}

func (x subnet) Manager(ctx context.Context, device string, port int, lid uint16) (host.IBManager, error) {
	return spoil[host.IBManager](x.m, "Subnet.Manager")(x.of.Manager(ctx, device, port, lid))
}

type pods struct {
	of host.Pods
	m  *marks
}

func (x pods) Pods(ctx context.Context) ([]accel.Pod, error) {
	return spoil[[]accel.Pod](x.m, "Pods")(x.of.Pods(ctx))
}
