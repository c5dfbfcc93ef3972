package gpudirect

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// podsTimeout is how long a round waits for the kubelet.
	podsTimeout = 2 * time.Second
	// podsBackOff is how long a kubelet that did not answer in time is not asked.
	podsBackOff = 10 * time.Minute
)

// podNames are the names of pods by UID. The kubelet does not report UIDs: they are joined by the devices.
type podNames struct {
	after  time.Time        // not before
	failed []snapshot.Issue // of the last request, in each round until the next one
	names  map[string]podName
}

type podName struct{ namespace, pod string }

// list lists the pods with devices. It is called before processes are searched: a device that changes its owner in
// between would otherwise name the pod of an earlier process by the next pod. ok is false without an answer.
func (p *podNames) list(ctx context.Context, h *host.Host) (pods []accel.Pod, ok bool) {
	if h.Pods == nil || h.Now().Before(p.after) {
		return nil, false
	}
	p.failed = nil
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	err := reading.Request(ctx, h, "pods", source.Pods, func() (err error) {
		pods, err = h.Pods.Pods(ctx)
		return err
	})
	if err == nil {
		return pods, true
	}
	if access.Unanswered(err) {
		p.after = h.Now().Add(podsBackOff)
	}
	p.failed = []snapshot.Issue{reading.IssueOf(source.Pods, err)}
	return nil, false
}

// apply sets the namespace and pod of processes of pods. Without a list those that were found before remain: a UID has
// one pod.
func (p *podNames) apply(found []accel.Process, used map[string]podDevices, pods []accel.Pod, listed bool) {
	if listed {
		p.names = namesOfPods(used, pods)
	}
	maps.DeleteFunc(p.names, func(uid string, _ podName) bool { return used[uid] == nil })
	for i := range found {
		if uid, ok := strings.CutPrefix(found[i].Job, kubernetesJob); ok {
			found[i].Namespace, found[i].Pod = p.names[uid].namespace, p.names[uid].pod
		}
	}
}

// kubernetesJob precedes the UID of the pod in Process.Job.
const kubernetesJob = "kubernetes/"

// deviceKind separates GPUs and RDMA devices: each kind may be allocated or shared.
type deviceKind int

const (
	kindGPU deviceKind = iota
	kindRDMA
)

// podDevices are the devices that the processes of a pod have open. Each has the names by which an allocation may
// identify it.
type podDevices map[deviceKind][][]string

// namesOfPods joins UIDs and pods. A pod is that of a UID if all devices of a kind that the UID has open are allocated
// to this pod and to no other one, nothing contradicts it (the other kind, or only some devices of a kind), and no
// other UID claims it. Devices of a kind of which none is allocated by an ID that identifies it (RDMA devices of a
// shared pool, all GPUs of a privileged monitor) decide nothing.
func namesOfPods(used map[string]podDevices, pods []accel.Pod) map[string]podName {
	owners := map[string][]int{}
	for i, p := range pods {
		for _, device := range p.Devices {
			owners[device] = append(owners[device], i)
		}
	}
	out, claims := map[string]podName{}, map[podName]int{}
	for uid, devices := range used {
		var of []int
		for _, kind := range devices {
			of = append(of, ownersOf(kind, owners)...)
		}
		slices.Sort(of)
		if of = slices.Compact(of); len(of) == 1 && of[0] != noOwner {
			p := pods[of[0]]
			out[uid] = podName{p.Namespace, p.Name}
			claims[out[uid]]++
		}
	}
	maps.DeleteFunc(out, func(_ string, name podName) bool { return claims[name] > 1 })
	return out
}

// noOwner stands for the owner of a device that is not allocated.
const noOwner = -1

// ownersOf returns the owners of devices of one kind, each once or more; none if no device has one.
func ownersOf(devices [][]string, owners map[string][]int) (out []int) {
	owned := false
	for _, names := range devices {
		var of []int
		for _, name := range names {
			of = append(of, owners[name]...)
		}
		if owned = owned || len(of) > 0; len(of) == 0 {
			of = []int{noOwner}
		}
		out = append(out, of...)
	}
	if !owned {
		return nil
	}
	return out
}

// devicesOfPods returns the devices that the processes of each pod have open, by UID. gpus are the names of GPUs by
// minor number, nodes the names of RDMA devices by uverbs node.
func devicesOfPods(found []accel.Process, gpus map[int][]string, nodes map[string][]string) map[string]podDevices {
	out := map[string]podDevices{}
	for i := range found {
		uid, ok := strings.CutPrefix(found[i].Job, kubernetesJob)
		if !ok {
			continue
		}
		if out[uid] == nil {
			out[uid] = podDevices{}
		}
		for _, minor := range found[i].GPUs {
			out[uid][kindGPU] = append(out[uid][kindGPU], gpus[minor])
		}
		for _, node := range found[i].Verbs {
			out[uid][kindRDMA] = append(out[uid][kindRDMA], nodes[node])
		}
	}
	return out
}

// podGPUs returns the names of GPUs in allocations, by minor number.
func podGPUs(gpus []gdrGPU) map[int][]string {
	out := map[int][]string{}
	for i := range gpus {
		out[gpus[i].minor] = []string{gpus[i].UUID, "nvidia" + strconv.Itoa(gpus[i].minor)}
	}
	return out
}

// verbsFunctions returns the functions of the uverbs nodes that pods have open: PCI addresses, or auxiliary devices of
// subfunctions. The node of a device in another network namespace is in sysfs too, without its RDMA device.
func verbsFunctions(h *host.Host, found []accel.Process) map[string][]string {
	out := map[string][]string{}
	for i := range found {
		if h.Pods == nil || !strings.HasPrefix(found[i].Job, kubernetesJob) {
			continue
		}
		for _, node := range found[i].Verbs {
			if out[node] != nil {
				continue
			}
			if dir, err := h.Files.Resolve(sysfs.VerbsDir + "/" + node); err == nil { // FUNCTION/infiniband_verbs/uverbsN
				out[node] = []string{path.Base(path.Dir(path.Dir(dir)))}
			}
		}
	}
	return out
}
