package capture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// A process is one entry, in lines "name: value" without empty values. Its environment is limited to the variables that host.Processes
// returns.

const (
	processDir = "processes"
	envLine    = "env_"
	confLine   = "conf_"
	dmabufLine = "dmabuf_"
)

func encodeProcess(p snapshot.Process) []byte {
	var b bytes.Buffer
	line := func(name, value string) {
		if value != "" {
			b.WriteString(strings.Map(printable, name+": "+value) + "\n")
		}
	}
	line("command", p.Command)
	var gpus []string
	for _, g := range p.GPUs {
		gpus = append(gpus, strconv.Itoa(g))
	}
	line("gpus", strings.Join(gpus, " "))
	line("verbs", strings.Join(p.Verbs, " "))
	if p.Cut {
		line("files_cut", "1")
	}
	if p.HasNCCL {
		line("nccl", cmp.Or(p.NCCL, "unknown"))
	}
	if p.Plugin {
		line("net_plugin", "1")
	}
	if p.Mover {
		line("cache_mover", "1")
	}
	for _, d := range p.DMABUFs {
		line(dmabufLine+d.Exporter, fmt.Sprintf("buffers=%d bytes=%d", d.Buffers, d.Bytes))
	}
	line("locked_memory", encodeLimit(p.LockedMemory, p.Unlimited))
	line("job", p.Job)
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		line(envLine+name, p.Env[name])
	}
	if p.Conf != nil {
		line("settings", "read")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Conf)) {
		line(confLine+name, p.Conf[name])
	}
	line("topology", p.Topology)
	return b.Bytes()
}

// encodeLimit is a limit in bytes, or unlimited; empty: unknown.
func encodeLimit(limit *uint64, unlimited bool) string {
	if limit != nil {
		return strconv.FormatUint(*limit, 10)
	}
	if unlimited {
		return "unlimited"
	}
	return ""
}

func decodeLimit(text string) (limit *uint64, unlimited, ok bool) {
	if text == "unlimited" {
		return nil, true, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return &n, false, err == nil
}

// printable keeps values that a job has chosen on one line.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func decodeProcess(path string, data []byte) (p snapshot.Process, err error) {
	p.Env = map[string]string{}
	garbled := func(line string) (snapshot.Process, error) { return p, host.ErrGarbled(path, []byte(line)) }
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return garbled(line)
		}
		switch name {
		case "command":
			p.Command = value
		case "cache_mover":
			p.Mover = value == "1"
		case "settings":
			p.Conf = map[string]string{}
		case "topology":
			p.Topology = value
		case "gpus":
			for g := range strings.FieldsSeq(value) {
				minor, err := strconv.Atoi(g)
				if err != nil {
					return garbled(line)
				}
				p.GPUs = append(p.GPUs, minor)
			}
		case "verbs":
			p.Verbs = strings.Fields(value)
		case "files_cut":
			p.Cut = value == "1"
		case "nccl":
			if p.HasNCCL = true; value != "unknown" {
				p.NCCL = value
			}
		case "net_plugin":
			p.Plugin = value == "1"
		case "locked_memory":
			if p.LockedMemory, p.Unlimited, ok = decodeLimit(value); !ok {
				return garbled(line)
			}
		case "job":
			p.Job = value
		default:
			if variable, ok := strings.CutPrefix(name, envLine); ok {
				p.Env[variable] = value
			} else if exporter, ok := strings.CutPrefix(name, dmabufLine); ok {
				d := snapshot.DMABUFs{Exporter: exporter}
				if _, err := fmt.Sscanf(value, "buffers=%d bytes=%d", &d.Buffers, &d.Bytes); err != nil {
					return garbled(line)
				}
				p.DMABUFs = append(p.DMABUFs, d)
			} else if setting, ok := strings.CutPrefix(name, confLine); ok && p.Conf != nil {
				p.Conf[setting] = value
			} else {
				return garbled(line)
			}
		}
	}
	return p, nil
}

// plainSetting matches values without host and file names.
var plainSetting = regexp.MustCompile(`^[A-Za-z0-9_,:=^+-]*$`)

// publicProcess removes settings that may contain hosts, users or files.
func publicProcess(data []byte) []byte {
	p, err := decodeProcess(processDir, data)
	if err != nil {
		return nil
	}
	private := func(name, value string) bool {
		return !plainSetting.MatchString(value) || name == "NCCL_COMM_ID" || name == "NCCL_HOSTID"
	}
	maps.DeleteFunc(p.Env, private)
	maps.DeleteFunc(p.Conf, private)
	if !plainSetting.MatchString(p.Command) {
		p.Command = ""
	}
	return encodeProcess(p)
}

// Processes records one entry per process.
func (r *Recorder) Processes(ctx context.Context, first []int, only bool) ([]snapshot.Process, bool, error) {
	found, refused, err := r.inner.Processes.Processes(ctx, first, only)
	if err != nil {
		return found, refused, err
	}
	names := []string{}
	for _, p := range found {
		name := strconv.Itoa(p.PID)
		r.answer(processDir+"/"+name, encodeProcess(p), nil)
		names = append(names, name)
	}
	slices.Sort(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(names) > 0 || r.known(processDir) {
		r.listed[processDir] = names
	}
	return found, refused, nil
}

// Processes returns the recorded processes.
func (p *Player) Processes(context.Context, []int, bool) (found []snapshot.Process, refused bool, err error) {
	names, err := p.List(processDir)
	if err != nil {
		if host.IsAbsent(err) {
			err = nil
		}
		return nil, false, err
	}
	for _, name := range names {
		path := processDir + "/" + name
		b, err := p.Read(path, nil)
		if err != nil {
			return nil, false, err
		}
		one, err := decodeProcess(path, b)
		if err != nil {
			return nil, false, err
		}
		if one.PID, err = strconv.Atoi(name); err != nil {
			return nil, false, host.ErrGarbled(path, []byte(name))
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b snapshot.Process) int { return cmp.Compare(a.PID, b.PID) })
	return found, false, nil
}
