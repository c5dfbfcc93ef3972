package gpudirect

import (
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// gdrInput is the input of a decision, by value or by the time of its read: equal inputs have the same answer.
type gdrInput struct {
	tree, machine, jobs time.Time
	devices             int
	gpus                []gpuFacts
	nics                []nicFacts
}

// gpuFacts is the NVML data of a GPU.
type gpuFacts struct {
	index, uuid, model string
	compute            int
	coupled            bool
	linked, unlinked   bool
	smallBAR           bool
}

// nicFacts is the data of a device in each round.
type nicFacts struct {
	device string
	at     time.Time // when its place in the PCI tree was read
	role   pci.Role
	ports  int
	active uint64 // bit by port
}

func (q *gdrInput) equal(o *gdrInput) bool {
	return q.tree.Equal(o.tree) && q.machine.Equal(o.machine) && q.jobs.Equal(o.jobs) && q.devices == o.devices &&
		slices.Equal(q.gpus, o.gpus) && slices.Equal(q.nics, o.nics)
}

// gdrResult is the last decision.
type gdrResult struct {
	question gdrInput
	facts    gdr.Machine
	section  *accel.GDR
}

// evaluate decides again if an input has changed. The GPUs of the section belong to the round.
func (c *gpuDirect) evaluate(machine *gdrHost, gpus []gdrGPU, nics []gdrNIC, devices []snapshot.Device) *accel.GDR {
	q := gdrInput{
		tree: c.tree.read.Time(), machine: machine.read.Time(), jobs: c.jobs.read.Time(), devices: machine.facts.Devices,
		gpus: make([]gpuFacts, len(gpus)), nics: make([]nicFacts, len(nics)),
	}
	for i := range gpus {
		g := &gpus[i]
		q.gpus[i] = gpuFacts{
			g.Index, g.UUID, g.Model, g.Compute, g.Coupled, counters.ValueOf(g.Linked), g.Linked != nil && !*g.Linked,
			counters.ValueOf(g.SmallBAR),
		}
	}
	for i := range nics {
		n := &nics[i]
		n.applyPorts(devices)
		f := nicFacts{device: n.Device, at: n.at, role: n.Role, ports: len(n.Ports)}
		for _, p := range n.Ports {
			if p.Active {
				f.active |= 1 << (p.Number & 63)
			}
		}
		q.nics[i] = f
	}
	if c.answer == nil || !c.answer.question.equal(&q) {
		section, facts := evaluateGDR(machine, gpus, nics, c.jobs.found, c.nccl)
		c.answer = &gdrResult{q, facts, section}
	}
	out := *c.answer.section
	out.GPUs = slices.Clone(out.GPUs)
	return &out
}
