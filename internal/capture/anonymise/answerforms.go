package anonymise

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/qp"
)

// answerKinds are the recorded answers. Their texts have a rule for each field, in fieldRules.
var answerKinds = []answerKind{
	kindOf[host.RDMAPort](`rdma/[^/]+/[0-9]+/port`),
	kindOf[[]host.Stat](`rdma/[^/]+/[0-9]+/stats`),
	kindOf[host.RDMASystem](answer.SystemPath),
	kindOf[[]host.RDMAHolder](`rdma/[^/]+/holders`),
	kindOf[host.LinkState](`ethtool/[^/]+/linkstate`),
	kindOf[host.LinkModes](`ethtool/[^/]+/linkmodes`),
	kindOf[host.Pause](`ethtool/[^/]+/pause`),
	kindOf[host.FEC](`ethtool/[^/]+/fec`),
	kindOf[[]host.Stat](`ethtool/[^/]+/(?:stats|standard)`),
	kindOf[[]host.HealthReporter](answer.HealthPath),
	kindOf[dcb.Config](`dcb/[^/]+/ieee`),
	kindOf[host.IBLink](`subnet/[^/]+/[0-9]+/link`),
	kindOf[host.IBCounters](`subnet/[^/]+/[0-9]+/agent/[0-9]+-[0-9]+`),
	kindOf[host.IBFEC](`subnet/[^/]+/[0-9]+/fec/[0-9]+-[0-9]+`),
	kindOf[host.IBPortSettings](`subnet/[^/]+/[0-9]+/settings`),
	kindOf[host.IBManager](`subnet/[^/]+/[0-9]+/manager/[0-9]+`),
	kindOf[accel.NVML](answer.NVMLSystemPath),
	kindOf[accel.GPU](answer.NVMLGPUDir + `/[0-9]+`),
	kindOf[accel.Process](answer.ProcessDir + `/[0-9]+`),
	kindOf[[]accel.Pod](answer.PodsPath),
	kindOf[answer.LauncherSearch](answer.LaunchersPath),
	kindOf[host.KernelLogReading](answer.KernelLogPath),
	kindOf[accel.Trace](answer.TracePath),
	kindOf[qp.Pairs](answer.PairsPath),
	kindOf[[]qp.QueuePair](`rdma/[^/]+/pairs`),
	kindOf[[]qp.Connection](`rdma/[^/]+/connections`),
}

type answerKind struct {
	path   func() *regexp.Regexp
	of     reflect.Type
	reduce func(p *pseudonyms, name string, data []byte) []byte
}

func kindOf[T any](paths string) answerKind {
	return answerKind{wholly(paths), reflect.TypeFor[T](), reduced[T]}
}

// reduced returns an answer by the rules of its fields. One that cannot be decoded becomes x, which cannot be either.
func reduced[T any](p *pseudonyms, name string, data []byte) []byte {
	v, err := answer.Decode[T](name, data)
	if err != nil {
		return []byte(unknownText + "\n")
	}
	before := answer.Encode(v)
	p.applyRules(reflect.ValueOf(&v).Elem(), fieldRules())
	if after := answer.Encode(v); !bytes.Equal(before, after) || !knownLines(data, before) {
		return after
	}
	return data
}

// knownLines reports whether the lines of an entry are those of its type: keys of a later version are not known.
func knownLines(data, encoded []byte) bool {
	lines := func(b []byte) []string { return slices.Sorted(strings.Lines(string(b))) }
	return slices.Equal(lines(data), lines(encoded))
}

// answerForm returns the form of an answer or of a page of a module's memory; nil if the entry is neither.
func answerForm(name string) keeping {
	if answer.IsEEPROM(name) {
		return func(p *pseudonyms, name, text string) string { return string(p.publicModule(name, []byte(text))) }
	}
	for i := range answerKinds {
		if answerKinds[i].path().MatchString(name) {
			return func(p *pseudonyms, name, text string) string {
				return string(answerKinds[i].reduce(p, name, []byte(text)))
			}
		}
	}
	return nil
}

// rule is what is kept of a text.
type rule func(text string) string

// matching keeps a text that an expression matches, unless it has something like an address. Others become x.
func matching(expr string) rule {
	whole := wholly(expr)
	return func(text string) string {
		if text == "" || whole().MatchString(text) && !addressLike().MatchString(text) {
			return text
		}
		return unknownText
	}
}

// shaped keeps addresses and UUIDs of this shape, and names that may contain an address: they get pseudonyms.
func shaped(expr string) rule {
	whole := wholly(expr)
	return func(text string) string {
		if text == "" || whole().MatchString(text) {
			return text
		}
		return unknownText
	}
}

// nameOf keeps names, without an address but as udev writes it.
func nameOf(expr string) rule {
	whole := shaped(expr)
	return func(text string) string {
		if !plainNames(text) {
			return unknownText
		}
		return whole(text)
	}
}

func dropped(string) string    { return "" }
func replaced(s string) string { return s } // all of it has a pseudonym

// rulesByField are the rules by TYPE.FIELD. A map has a rule for its keys and values: publicSetting.
type rulesByField map[string]rule

var fieldRules = sync.OnceValue(func() rulesByField {
	name, word := nameOf(name63), matching(`[A-Za-z0-9_-]{1,32}`)
	counterName := matching(`[A-Za-z_\[][A-Za-z0-9_.,%\[\]() -]{0,80}`)
	board, release := matching(vendor), matching(version)
	address, exporter := matching(pciBDF), matching(`[a-z][a-z0-9_]{0,31}`)
	return rulesByField{
		"RDMAPort.Netdev":    name,
		"Stat.Name":          counterName,
		"FECCount.Name":      counterName,
		"IBFEC.Mode":         matching(`[A-Za-z0-9 (),_-]{1,24}`),
		"IBLink.FarGUID":     shaped(guid),
		"IBManager.GUID":     shaped(guid),
		"HealthReporter.Bus": word, "HealthReporter.Device": nameOf(pciBDF + `|[a-z0-9_]{1,24}\.[a-z]{1,8}\.[0-9]{1,5}`),
		"HealthReporter.Name":   word,
		"IBLink.FarDescription": replaced,
		"NVML.Driver":           release,
		"NVML.CUDA":             release,
		"GPU.UUID":              shaped(`(?:GPU|MIG)-` + uuid),
		"GPU.PCIAddress":        address,
		"GPU.Model":             board,
		"GPU.Serial":            replaced,
		"GPU.Capability":        matching(`[0-9]{1,3}\.[0-9]{1,2}`),
		"GPUFabric.Cluster":     replaced,
		"Process.Command":       knownCommand,
		"Process.Verbs":         matching(`uverbs[0-9]{1,5}`),
		"Process.NCCL":          matching(`[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}|unknown`),
		"Process.Libraries":     matching(`[a-z]{1,16}`),
		"Process.Job":           shaped(`slurm/[0-9_]{1,20}|kubernetes/` + uuid),
		"Process.Step":          matching(`[0-9]{1,10}|batch|extern|interactive`),
		"Process.Container":     shaped(`[0-9a-f]{12}`),
		"Process.Unit":          matching(`user\.slice|session-[0-9]{1,8}\.scope|(?:` + commands + `)\.service`),
		"Process.Network":       matching(`[0-9]{1,11}`),
		"Process.Netdevs":       nameOf(namesPattern),
		"Process.PeersOver":     nameOf(namesPattern),
		"Process.JobName":       dropped,
		"Process.User":          dropped,
		"Process.Topology":      shaped(`(?:</?(?:system|cpu|pci)(?: (?:numaid="-?[0-9]{1,6}"|busid="` + pciBDF + `"))?>)*`),
		"DMABUFs.Exporter":      exporter,
		"Pod.Namespace":         replaced,
		"Pod.Name":              replaced,
		"Pod.Devices": func(text string) string {
			if shaped(`(?:GPU|MIG)-`+uuid)(text) == text {
				return text
			}
			return nameOf(pciBDF + `|` + name63)(text)
		},
		"Launcher.Name":          knownCommand,
		"Launcher.Unread":        matching(`[A-Za-z ,-]{1,60}`),
		"Event.Kind":             word,
		"Event.Driver":           word,
		"Event.PCIAddress":       address,
		"Event.Netdev":           name,
		"Event.Device":           name,
		"Event.Detail":           knownDetail,
		"KernelEvent.Line":       dropped,
		"Trace.Missing":          matching(`[A-Za-z][A-Za-z0-9_ ,.:;()/-]{1,160}`),
		"Registration.Device":    name,
		"Registration.Function":  nameOf(pciBDF + `|` + name63),
		"Registration.Mechanism": word,
		"Registration.Exporter":  exporter,
		"AsyncTotal.Device":      name,
		"AsyncTotal.Kind":        word,
		"AsyncEvent.Device":      name,
		"AsyncEvent.Kind":        word,
		"PairEvent.Kind":         word,
		"PairEvent.Device":       name,
		"PairEvent.Command":      knownCommand,
		"PairEvent.Peer":         shaped(gid + `|lid:[0-9]{1,10}`),
		"PairEvent.Event":        word,
		"Connection.Peer":        shaped(gid),
	}
})

// applyRules applies the rules to all texts of a value.
func (p *pseudonyms) applyRules(v reflect.Value, rules rulesByField) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			p.applyRules(v.Elem(), rules)
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.applyRules(v.Index(i), rules)
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if len(f.Index) == 1 && f.IsExported() {
				p.applyRule(v.FieldByIndex(f.Index), rules[ruleName(v.Type(), f)], rules)
			}
		}
	}
}

func ruleName(t reflect.Type, f reflect.StructField) string { return t.Name() + "." + f.Name }

func (p *pseudonyms) applyRule(v reflect.Value, r rule, rules rulesByField) {
	switch {
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			if !publicSetting(key.String(), v.MapIndex(key).String()) {
				v.SetMapIndex(key, reflect.Value{})
			}
		}
	case v.Kind() == reflect.String && r != nil:
		v.SetString(p.ruled(r, v.String()))
	case v.Kind() == reflect.String:
		v.SetString("")
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String && r != nil:
		for i := range v.Len() {
			v.Index(i).SetString(p.ruled(r, v.Index(i).String()))
		}
	default:
		p.applyRules(v, rules)
	}
}

// ruled returns a text by its rule, without host names. An encoded text has underscores in place of blanks: they end a
// host name with a dash, which no device has.
func (p *pseudonyms) ruled(r rule, text string) string {
	text = r(text)
	for p.hostInName != nil && p.hostInName.MatchString(text) {
		text = p.hostInName.ReplaceAllString(text, "${1}"+Host+"${2}")
	}
	return p.hostless(text)
}

// commands are programs with a public name: of a job, of a launcher, of storage.
const commands = qp.Kernel + `|python[0-9.]{0,6}|pt_main_thread|torchrun|mpirun|mpiexec|orterun|prted?|srun|vllm|sglang|trtllm-serve|` +
	`tritonserver|ray|cacheserver|mooncake_master|(?:all_reduce|all_gather|alltoall|broadcast|reduce_scatter|sendrecv|reduce|` +
	`gather|scatter|hypercube)_perf|ib_(?:write|read|send|atomic)_(?:bw|lat)|ucx_perftest|rping|nvidia-[a-z]{1,20}|dcgm[a-z-]{0,20}|` +
	`nv-hostengine|slurm(?:stepd|d)?|containerd(?:-shim[a-z0-9-]{0,12})?|crio|dockerd|kubelet|sshd|pbs_mom|lsfd?|sge_execd|` +
	`wekanode|ganesha(?:\.nfsd)?|mmfsd|beegfs-[a-z]{1,12}|lustre|ceph-[a-z]{1,8}|spdk_tgt|nvmf_tgt|opensm|ibacm|rdma_exporter`

// knownCommand keeps names of public programs: that of an own program may tell of its project.
var knownCommand = shaped(commands)

// detailForm is a captured field of a message of the kernel: a number, a command of the firmware, a function, a state.
var detailForm = lazy.Regexp(`^(?:(?:module|queue|state|port|slot|bar|BAR|VF) ?[0-9 >-]{1,20}|-?[0-9]{1,10}[Ws]?|` +
	`0x[0-9a-f]{1,10}(?: 0x[0-9a-f]{1,10})?|[A-Z][A-Z0-9_]{1,40}|[A-Z][A-Za-z]{0,20}(?: [A-Za-z/()-]{1,20}){0,5}|` +
	`[a-z0-9]{1,16}(?:_[a-z0-9]{1,20}){1,6}|[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}|now|request)$`)

func knownDetail(text string) string {
	parts := strings.Split(text, ", ")
	for i, part := range parts {
		if part != "" && (addressLike().MatchString(part) || !detailForm().MatchString(part)) {
			parts[i] = knownCommand(part)
		}
	}
	return strings.Join(parts, ", ")
}
