package anonymise

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/qp"
)

// changed returns the content of an entry with a change; nil if it cannot be decoded: the entry is left out.
func changed[T any](name string, data []byte, change func(*T)) []byte {
	v, err := answer.Decode[T](name, data)
	if err != nil {
		return nil
	}
	change(&v)
	return answer.Encode(v)
}

// podJob precedes the UID of a pod in the name of a job.
const podJob = "kubernetes/"

// process replaces the UID of a pod and the ID of a container.
func (p *pseudonyms) process(one *accel.Process) {
	if uid, ok := strings.CutPrefix(one.Job, podJob); ok {
		one.Job = podJob + p.podUIDs[uid]
	}
	one.Container = p.containers[one.Container]
}

// gpuUUIDPattern matches a UUID of a GPU or MIG instance in any file, for example
// /proc/driver/nvidia/gpus/ADDRESS/information.
var gpuUUIDPattern = lazy.Regexp(`\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// gpu replaces the UUIDs and the serial number of a GPU.
func (p *pseudonyms) gpu(g *accel.GPU) {
	g.UUID = p.gpuUUIDs(g.UUID)
	g.Serial = p.serials[g.Serial]
	if g.Fabric != nil {
		g.Fabric.Cluster = p.uuids[g.Fabric.Cluster]
	}
}

// gpuUUIDs replaces the UUIDs of GPUs in a text.
func (p *pseudonyms) gpuUUIDs(s string) string {
	return gpuUUIDPattern().ReplaceAllStringFunc(s, func(u string) string { return u[:4] + cmp.Or(p.uuids[u[4:]], u[4:]) })
}

// pods replaces the names of namespaces and pods.
func (p *pseudonyms) pods(found *[]accel.Pod) {
	for i, pod := range *found {
		(*found)[i].Namespace, (*found)[i].Name = p.namespaces[pod.Namespace], p.podNames[pod.Name]
	}
}

// kfdPattern matches the unique ID of an AMD GPU and the ID of its XGMI hive in the topology of amdkfd. Zero is none.
var kfdPattern = lazy.Regexp(`(?m)^(unique_id|hive_id) ([1-9][0-9]*)$`)

func isKFD(file string) bool { return strings.Contains(file, "kfd/topology/nodes/") }

// kfd replaces the IDs in the properties of a node.
func (p *pseudonyms) kfd(text string) string {
	return kfdPattern().ReplaceAllStringFunc(text, func(line string) string {
		name, id, _ := strings.Cut(line, " ")
		return name + " " + p.kfdIDs[id]
	})
}

// isBareID reports whether a file holds an address or a GUID as digits without colons: netdev_phys_item_id of
// include/linux/netdevice.h.
func isBareID(name string) bool {
	base := path.Base(name)
	return base == "phys_switch_id" || base == "phys_port_id"
}

// bareID is the digits; empty if the driver uses another kind of id.
type bareID string

func bareIDOf(content string) bareID {
	d := strings.TrimSpace(content)
	if len(d) < 12 || len(d)%2 != 0 || strings.Trim(d, "0123456789abcdef") != "" {
		return ""
	}
	return bareID(d)
}

// reversed returns the id in reverse byte order: mlx5 prints a GUID in memory order.
func (b bareID) reversed() bareID {
	var out strings.Builder
	for i := len(b); i > 0; i -= 2 {
		out.WriteString(string(b[i-2 : i]))
	}
	return bareID(out.String())
}

// tail returns the digits that are replaced; empty if there are none.
func (b bareID) tail() string {
	if b == "" || strings.Trim(string(b[len(b)-6:len(b)-1]), "0") == "" {
		return ""
	}
	return string(b[len(b)-6 : len(b)-1])
}

// bare replaces the tail, in the byte order in which it occurs elsewhere on the machine.
func (p *pseudonyms) bare(content string) string {
	id := bareIDOf(content)
	if to, ok := p.low[id.reversed().tail()]; ok {
		return string(id.reversed().withTail(to).reversed()) + "\n"
	}
	if to, ok := p.low[id.tail()]; ok {
		return string(id.withTail(to)) + "\n"
	}
	return content
}

func (b bareID) withTail(to string) bareID {
	return b[:len(b)-6] + bareID(to) + b[len(b)-1:]
}

// firstPID is the first pseudonym of a process.
const firstPID = 1001

// Processes are named by their PID in their own entries, in the lists of RDMA netlink and NVML, and in the observation
// of eBPF programs. eachPID replaces them in an entry, and returns it unchanged if it has none or cannot be decoded.
func eachPID(e capture.Entry, to func(int) int) capture.Entry {
	switch {
	case strings.HasPrefix(e.Path, answer.ProcessDir+"/"):
		if pid, err := strconv.Atoi(strings.TrimPrefix(e.Path, answer.ProcessDir+"/")); err == nil {
			e.Path = answer.ProcessDir + "/" + strconv.Itoa(to(pid))
		}
	case e.Kind != capture.File:
	case strings.HasPrefix(e.Path, "rdma/") && strings.HasSuffix(e.Path, "/holders"):
		return withPIDs(e, to, func(holders *[]host.RDMAHolder) (pids []*int) {
			for i := range *holders {
				pids = append(pids, &(*holders)[i].PID)
			}
			return pids
		})
	case answer.IsGPU(e.Path):
		return withPIDs(e, to, func(g *accel.GPU) (pids []*int) {
			for i := range g.Processes {
				pids = append(pids, &g.Processes[i])
			}
			return pids
		})
	case e.Path == answer.TracePath:
		return withPIDs(e, to, tracedPIDs)
	case e.Path == answer.PairsPath:
		return withPIDs(e, to, func(p *qp.Pairs) (pids []*int) {
			for i := range p.Events {
				pids = append(pids, &p.Events[i].PID)
			}
			return pids
		})
	case strings.HasPrefix(e.Path, "rdma/") && strings.HasSuffix(e.Path, "/pairs"):
		return withPIDs(e, to, func(pairs *[]qp.QueuePair) (pids []*int) {
			for i := range *pairs {
				pids = append(pids, &(*pairs)[i].PID)
			}
			return pids
		})
	case strings.HasPrefix(e.Path, "rdma/") && strings.HasSuffix(e.Path, "/connections"):
		return withPIDs(e, to, func(found *[]qp.Connection) (pids []*int) {
			for i := range *found {
				pids = append(pids, &(*found)[i].PID)
			}
			return pids
		})
	}
	return e
}

// withPIDs replaces the PIDs in an entry.
func withPIDs[T any](e capture.Entry, to func(int) int, in func(*T) []*int) capture.Entry {
	v, err := answer.Decode[T](e.Path, e.Data)
	if err != nil {
		return e
	}
	pids := in(&v)
	for _, pid := range pids {
		*pid = to(*pid)
	}
	if len(pids) > 0 {
		e.Data = answer.Encode(v)
	}
	return e
}

func tracedPIDs(t *accel.Trace) (pids []*int) {
	for i := range t.Registrations {
		pids = append(pids, &t.Registrations[i].PID)
	}
	for i := range t.Recent {
		pids = append(pids, &t.Recent[i].PID)
	}
	return pids
}

// replacePIDs numbers all processes of an archive in order. 0 stands for those that are not visible.
func replacePIDs(a *capture.Archive) {
	pids := map[int]int{}
	each := func(to func(int) int) {
		for i := range a.Rounds {
			for j := range a.Rounds[i].Entries {
				a.Rounds[i].Entries[j] = eachPID(a.Rounds[i].Entries[j], to)
			}
		}
	}
	each(func(pid int) int {
		pids[pid] = pid
		return pid
	})
	delete(pids, 0)
	for i, pid := range slices.Sorted(maps.Keys(pids)) {
		pids[pid] = firstPID + i
	}
	each(func(pid int) int { return pids[pid] })
}
