package proc

import (
	"bytes"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rdma_exporter/internal/gdr/library"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/words"
)

// Limits of settings, since the job chooses their length: of one, and of all settings of a process or of its files. The
// longest in NCCL are lists of devices and interfaces.
const (
	settingLength  = 4 << 10
	settingsLength = 64 << 10
)

// Names of settings: of NCCL, in its files and in the environment, and of UCX for RDMA, in the environment. A name that
// is not that of a variable could break a line of a capture.
var (
	settingName  = lazy.Regexp(`^NCCL_[A-Z0-9_]+$`)
	variableName = lazy.Regexp(`^(NCCL|UCX_IB)_[A-Z0-9_]+$`)
)

// otherNames are the variables of a job's number, nodes and rank, and of communication libraries.
var otherNames = slices.Concat(nccl.NodeVariables(), library.Variables,
	[]string{"SLURM_JOB_ID", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})

// addSetting adds a setting that is not set yet, since getenv(3) and NCCL use the first of two. It reports whether it
// fits into the limit.
func addSetting(to map[string]string, room *int, name, value string) bool {
	if _, there := to[name]; there {
		return true
	}
	value = strings.ToValidUTF8(value, "?")
	length := len(name) + len(value)
	if length > settingLength || length > *room {
		return false
	}
	*room -= length
	to[name] = value
	return true
}

// environment keeps the variables that concern the job: /proc/PID/environ has NAME=VALUE, each followed by NUL. whole
// is false if something exceeds a limit.
func environment(b []byte) (out map[string]string, whole bool) {
	out, whole = map[string]string{}, true
	room := settingsLength
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		name, value, ok := bytes.Cut(entry, []byte("="))
		if ok && (variableName().Match(name) || slices.Contains(otherNames, string(name))) {
			whole = addSetting(out, &room, string(name), string(value)) && whole
		}
	}
	return out, whole
}

// lockedMemory parses "Max locked memory  67108864  67108864  bytes" of /proc/PID/limits: the soft limit. nil and
// false: there is no such line.
func lockedMemory(b []byte) (limit *uint64, unlimited bool) {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if n, err := strconv.ParseUint(soft, 10, 64); err == nil {
				return &n, false
			}
			return nil, soft == "unlimited"
		}
	}
	return nil, false
}

// commandOf returns the name in parentheses in /proc/PID/stat: the first 15 bytes of the program name, or the name that
// the program has set.
func commandOf(b []byte) string {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return ""
	}
	return printable(string(b[from+1 : to]))
}

// Fields of /proc/PID/stat after the name in parentheses, the first being 0.
const (
	statParent = 1  // ppid, the 4th
	statStart  = 19 // starttime, the 22nd
)

// statField returns a field of /proc/PID/stat; empty if missing.
func statField(b []byte, n int) string {
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if n >= len(fields) {
		return ""
	}
	return fields[n]
}

func printable(s string) string {
	return words.Replace(strings.ToValidUTF8(s, "?"), unicode.IsControl, '?')
}

// uidOf returns the real user of /proc/PID/status, "Uid:  1000  1000  1000  1000"; empty if missing.
func uidOf(b []byte) string {
	uid, _, _ := strings.Cut(rooted.StatusField(b, "Uid"), "\t")
	return uid
}

// variable returns a variable of /proc/PID/environ.
func variable(b []byte, name string) string {
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// sinceBootOf returns the start time of a process: the kernel reports it in clock ticks, which are hundredths of a
// second (USER_HZ).
func sinceBootOf(start string) time.Duration {
	ticks, err := strconv.ParseInt(start, 10, 64)
	if err != nil || ticks > math.MaxInt64/int64(10*time.Millisecond) {
		return 0
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

var ncclLibrary = lazy.Regexp(`^libnccl\.so\.([0-9]+\.[0-9]+\.[0-9]+)$`)

// mappedFile returns the file in a line of /proc/PID/maps.
func mappedFile(line string) string { return strings.TrimSuffix(strings.TrimSpace(line), " (deleted)") }

// mapped searches for NCCL and its net plugins in lines of /proc/PID/maps.
func mapped(maps []byte) (version string, found, plugin bool) {
	for line := range strings.Lines(string(maps)) {
		base := path.Base(mappedFile(line))
		switch m := ncclLibrary().FindStringSubmatch(base); {
		case m != nil:
			version, found = m[1], true
		case strings.HasPrefix(base, "libnccl.so"):
			found = true
		case strings.HasPrefix(base, "libnccl-net"):
			plugin = true
		}
	}
	return version, found, plugin
}
