package gdr

import (
	"cmp"
	"maps"

	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/pci"
)

// Obstacle is a reason why data of a GPU does not go to a NIC directly, of several in the order of removal.
type Obstacle struct {
	Kind   string // settings, port, mechanism, place
	Reason Reason
	Words  string // as of the reason, with the device or the distances
	After  Pair   // the best pair of the GPU once it and those before it are removed
}

// removal is a set of obstacles.
type removal uint16

// The obstacles that can be removed.
const (
	noHCA removal = 1 << iota
	noLevel
	useC2C
	noFile
	useDMABUF
	useRead
	portsUp
	anyMechanism
	moved
	removeAll removal = 1<<iota - 1
)

// removals are the obstacles in the order of removal: first what costs an edit of the job, then the links, for which
// other alerts are, then modules and drivers, which cost a restart of jobs. A NIC in another slot costs the most.
var removals = []struct {
	bit    removal
	kind   string
	reason Reason // empty: that of the verdict while only this obstacle is left
}{
	{noHCA, "settings", notChosen},
	{noLevel, "settings", LevelSet},
	{useC2C, "settings", CoupledOff},
	{noFile, "settings", TopologyFile},
	{useDMABUF, "settings", DMABUFDisabled},
	{useRead, "settings", ReadOff},
	{portsUp, "port", NearestDown},
	{anyMechanism, "mechanism", ""},
	{moved, "place", ""},
}

// without returns the job without the settings in a set. A distance limit above the default is no obstacle.
func (j Job) without(removed removal) Job {
	drop := map[string]bool{
		"NCCL_IB_HCA": removed&noHCA != 0, "NCCL_DMABUF_ENABLE": removed&useDMABUF != 0,
		"NCCL_NET_GDR_READ": removed&useRead != 0,
	}
	if limit, set := j.limit(true); set && limit < nccl.Level(pci.P2C) {
		drop["NCCL_NET_GDR_LEVEL"] = removed&noLevel != 0
	}
	j.Env = maps.Clone(j.Env)
	maps.DeleteFunc(j.Env, func(name, _ string) bool { return drop[name] })
	return j
}

// search decides again with obstacles removed, for the GPUs of a machine.
type search struct {
	m         *Machine
	job       Job
	decisions map[removal]*decision
}

func (s *search) decide(removed removal) *decision {
	d := s.decisions[removed]
	if d == nil {
		d = newDecision(s.m, s.job, removed)
		s.decisions[removed] = d
	}
	return d
}

// best returns the best pair of a GPU with a set of obstacles removed.
func (s *search) best(g int, removed removal) Pair { return s.decide(removed).best(g, nil, nil) }

// explain adds the obstacles to the best pair of a GPU, and what is possible with its hardware.
func (s *search) explain(p *Pair) {
	p.CanSend, p.CanReceive = p.Send.State, p.Receive.State
	if p.Verdict().State == Direct {
		return
	}
	needed := s.needed(p.GPU)
	var removed removal
	for _, r := range removals {
		if needed&r.bit == 0 {
			continue
		}
		left := s.best(p.GPU, needed&^r.bit)
		reason := cmp.Or(r.reason, left.Verdict().Reason)
		if left.NIC < 0 {
			reason = left.Receive.Reason
		}
		removed |= r.bit
		after := s.best(p.GPU, removed)
		words := s.wordsOf(reason, needed&^r.bit, after)
		p.Obstacles = append(p.Obstacles, Obstacle{r.kind, reason, words, after})
	}
	if needed&moved != 0 && !s.movable(p.GPU) {
		needed &^= moved
	}
	possible := s.best(p.GPU, needed)
	p.CanSend, p.CanReceive = possible.Send.State, possible.Receive.State
}

// wordsOf returns a reason in words, with the device that becomes the best one, or its distances that differ. removed
// is all but the obstacle of the reason.
func (s *search) wordsOf(r Reason, removed removal, after Pair) string {
	switch {
	case r == TopologyFile && after.NIC >= 0:
		return s.decide(removed).pair(after.GPU, after.NIC).DistancesInWords()
	case (r == notChosen || r == NearestDown) && after.NIC >= 0:
		return s.m.NICs[after.NIC].Device + ": " + r.Words()
	}
	return r.Words()
}

// DistancesInWords returns the distances of a pair by the topology file and by the PCI tree.
func (p Pair) DistancesInWords() string {
	return "the topology file of NCCL gives distance " + string(p.Distance) + ", the PCI tree " + string(p.Tree)
}

// needed returns a smallest set of obstacles without which the path of a GPU is the best possible. Of obstacles that
// replace each other those later in removals stay, except the place: no NIC moves where a port or a setting is enough.
func (s *search) needed(g int) removal {
	needed := removeAll
	if s.best(g, needed&^moved).Receive.State == Unknown { // also whether the place matters
		needed &^= moved
	}
	ideal := s.best(g, needed)
	drop := func(bit removal) {
		if rest := s.best(g, needed&^bit); rest.state() >= ideal.state() {
			needed &^= bit
		}
	}
	drop(moved)
	for _, r := range removals {
		drop(r.bit)
	}
	return needed
}

// state orders paths: a greater one is better.
func (p Pair) state() int { return 3*ranks[p.Receive.State] + ranks[p.Send.State] }

// movable reports whether a GPU can have a near NIC: it is below a PCIe switch or coupled to its CPU, and a NIC is near
// no GPU, while others are near theirs or none is on its socket. Or it is the only one without a near NIC, of at least
// three GPUs: its NIC is gone.
func (s *search) movable(g int) bool {
	d := s.decide(removeAll &^ moved)
	gpu := &d.GPUs[g]
	if d.Virtual || len(gpu.Place.Chain) <= 2 && !gpu.Coupled { // a root port and the GPU
		return false
	}
	spare, paired := false, map[int]bool{}
	for n := range d.NICs {
		near := false
		for other := range d.GPUs {
			if d.nics[n].eligible && nccl.Level(d.pair(other, n).Distance) <= nccl.Level(pci.P2C) {
				near, paired[other] = true, true
			}
		}
		spare = spare || d.nics[n].eligible && !near
	}
	return spare && (len(paired) > 0 || d.best(g, nil, nil).Distance == pci.SYS) ||
		len(paired) >= 2 && len(paired) == len(d.GPUs)-1
}
