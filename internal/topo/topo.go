// Package topo draws a machine: GPUs and NICs in the PCI tree, their distances, GPUDirect RDMA between them, and
// degraded links.
package topo

import (
	"cmp"
	"slices"
	"strings"

	"rdma_exporter/internal/pci"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
)

// Machine is the topology of a machine. Its JSON form is the answer of the API.
type Machine struct {
	Host      string    `json:"host"`
	Virtual   bool      `json:"virtual"`
	Driver    string    `json:"gpu_driver,omitempty"`
	Flavour   string    `json:"gpu_driver_flavour,omitempty"`
	Peermem   string    `json:"peer_memory_module,omitempty"`
	NCCL      string    `json:"nccl_version,omitempty"` // evaluated for; empty: a current one
	GPUs      []GPU     `json:"gpus"`
	NICs      []NIC     `json:"nics"`
	Bare      []Bare    `json:"without_rdma_device,omitempty"`
	Missing   []Missing `json:"missing_devices,omitempty"`
	Pairs     []Pair    `json:"pairs"`
	Functions []Node    `json:"functions"` // by address
	Processes []Process `json:"processes,omitempty"`
	GIDs      []GID     `json:"gid_mismatches,omitempty"`
	// Observation is nil where no eBPF programs are attached.
	Observation *Observation `json:"observation,omitempty"`
	Settings    []Setting    `json:"job_settings,omitempty"` // of NCCL, as check --setup compares them
}

// Node is a PCI function in the tree.
type Node struct {
	Address string `json:"pci_address"`
	Parent  string `json:"parent"` // the function above it, or the directory of its host bridge
	NUMA    int    `json:"numa_node"`
	CPUs    string `json:"cpus,omitempty"`
	// The link: downwards for root ports and downstream ports, upwards for all others. 0: unknown.
	Speed    float64 `json:"transfers_per_second,omitempty"`
	Width    uint64  `json:"lanes,omitempty"`
	MaxSpeed float64 `json:"max_transfers_per_second,omitempty"`
	MaxWidth uint64  `json:"max_lanes,omitempty"`
	Redirect bool    `json:"acs_redirect,omitempty"` // of traffic between GPU and NIC
}

// GPU is one GPU.
type GPU struct {
	Index   string `json:"gpu"`
	UUID    string `json:"uuid,omitempty"`
	Address string `json:"pci_address"`
	Model   string `json:"model,omitempty"`
	NUMA    int    `json:"numa_node"`
	Coupled bool   `json:"c2c"`
	IOMMU   string `json:"iommu_group_type,omitempty"`
	Best    *Pair  `json:"best,omitempty"` // with the best eligible NIC; absent if there is none
	Reason  string `json:"reason"`
	Words   string `json:"explanation"`
	Remedy  string `json:"remedy,omitempty"`
	// Obstacles are all reasons why data does not go directly, in the order of removal.
	Obstacles  []Obstacle `json:"obstacles,omitempty"`
	CanSend    string     `json:"can_send"`        // direct, staging, unknown: what the hardware can have
	CanReceive string     `json:"can_receive"`     // the same
	Marks      []string   `json:"marks,omitempty"` // degraded links on its path
	// Evaluated is the PID of the process for whose NCCL the GPU was evaluated; 0: none.
	Evaluated int        `json:"judged_for_pid,omitempty"`
	Transport *Transport `json:"transport,omitempty"` // absent if no process uses it with NCCL or an RDMA device
}

// Obstacle is a reason why data of a GPU does not go to a NIC directly.
type Obstacle struct {
	Kind    string `json:"kind"` // settings, port, mechanism, place
	Reason  string `json:"reason"`
	Words   string `json:"explanation"`
	Remedy  string `json:"remedy,omitempty"`
	Send    string `json:"send"`         // the path without this obstacle and those before it
	Receive string `json:"receive"`      // the same
	After   string `json:"after_reason"` // of that path
	Path    string `json:"after"`        // it in words
}

// NIC is an RDMA device.
type NIC struct {
	Device          string   `json:"device"`
	Address         string   `json:"pci_address"`
	Role            string   `json:"role"`
	NUMA            int      `json:"numa_node"`
	Active          bool     `json:"active"`
	Rate            float64  `json:"port_bits_per_second,omitempty"` // of its ACTIVE ports together
	Available       float64  `json:"pcie_available_bits_per_second,omitempty"`
	Capable         float64  `json:"pcie_capable_bits_per_second,omitempty"`
	LimitedBy       string   `json:"pcie_limited_by,omitempty"`
	MaxPayload      int      `json:"max_payload_bytes,omitempty"`
	MaxReadRequest  int      `json:"max_read_request_bytes,omitempty"`
	RelaxedOrdering *bool    `json:"relaxed_ordering,omitempty"`
	Redirect        *bool    `json:"acs_redirect,omitempty"`
	IOMMU           string   `json:"iommu_group_type,omitempty"`
	DMABUF          *bool    `json:"dmabuf,omitempty"`
	Marks           []string `json:"marks,omitempty"` // degraded links on its path, or limits
}

// Bare is a PCI function that may be expected to have an RDMA device but has none.
type Bare struct {
	Address string `json:"pci_address"`
	Driver  string `json:"driver"` // empty: none is bound
}

// Missing is an expected device whose PCI function is not on the bus.
type Missing struct {
	Device  string `json:"device"`
	Address string `json:"pci_address"`
	Reason  string `json:"reason"`
}

// Pair is a GPU and a NIC.
type Pair struct {
	GPU       string `json:"gpu"`
	Device    string `json:"device"`
	Topology  string `json:"distance,omitempty"`      // nvidia-smi topo -m
	Distance  string `json:"nccl_distance,omitempty"` // NCCL
	Mechanism string `json:"mechanism,omitempty"`
	Eligible  bool   `json:"eligible"`
	Send      string `json:"send"`
	Receive   string `json:"receive"`
	Reason    string `json:"reason"`
	Words     string `json:"explanation"`
	Remedy    string `json:"remedy,omitempty"`
	// Detour is the reason why direct traffic passes the root complex although GPU and NIC are below one switch, which
	// costs bandwidth.
	Detour string `json:"detour,omitempty"`
}

// New returns the topology of a node. Sections that were not read are left out.
func New(host string, n *snapshot.Node) *Machine {
	m := &Machine{Host: host, GPUs: []GPU{}, NICs: []NIC{}, Pairs: []Pair{}, Functions: []Node{}}
	d := n.GDR
	if d == nil {
		return m
	}
	m.Settings = settingsOf(n.Setup)
	m.Virtual, m.Driver, m.Flavour, m.Peermem, m.NCCL = d.Virtual, d.Driver, d.Flavour,
		cmp.Or(d.Peermem, d.PeerClient), d.NCCL
	if n.GPUs != nil {
		m.Driver = cmp.Or(m.Driver, n.GPUs.Driver)
	}
	tree := &nodes{m: map[string]*Node{}}
	paths := map[string][]pci.Hop{}
	if n.PCIe != nil {
		for i := range n.PCIe.Devices {
			paths[n.PCIe.Devices[i].Device] = hopsOf(n.PCIe.Devices[i].Hops)
		}
	}
	order := orderNICs(d.NICs)
	for _, i := range order {
		nic := &d.NICs[i]
		tree.add(nic.Root, nic.Path, paths[nic.Device], nic.NUMA, nic.CPUs)
		m.NICs = append(m.NICs, nicOf(nic, paths[nic.Device]))
	}
	m.addPorts(n.InfiniBand)
	for i := range d.GPUs {
		g := &d.GPUs[i]
		hops := hopsOf(g.Hops)
		tree.add(g.Root, listAddresses(hops), hops, g.NUMA, "")
		m.GPUs = append(m.GPUs, m.gpuOf(d, g, hops))
	}
	if n.InfiniBand != nil {
		m.addBare(n.InfiniBand, tree)
	}
	for g := range d.GPUs {
		for _, i := range order {
			m.Pairs = append(m.Pairs, pairOf(d, d.Pairs[g*len(d.NICs)+i]))
		}
	}
	for i := range d.NICs {
		for _, at := range d.NICs[i].RedirectAt {
			if n := tree.m[at]; n != nil {
				n.Redirect = true
			}
		}
	}
	m.Functions = tree.sort()
	m.addProcesses(d)
	m.addObservation(d)
	return m
}

// addBare adds the functions without an RDMA device, and the devices that disappeared from the bus.
func (m *Machine) addBare(ib *snapshot.InfiniBand, tree *nodes) {
	for i := range ib.Bare {
		f := &ib.Bare[i]
		tree.add(f.Root, f.Path, nil, f.NUMA, "")
		m.Bare = append(m.Bare, Bare{f.PCIAddress, f.Driver})
	}
	for _, d := range ib.Missing {
		if tree.m[d.PCIAddress] == nil {
			m.Missing = append(m.Missing, Missing{d.Name, d.PCIAddress, d.Reason})
		}
	}
}

// orderNICs returns the indices of NICs sorted by NUMA node and address, like GPUs.
func orderNICs(nics []accel.GDRNIC) []int {
	order := make([]int, len(nics))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(nics[a].NUMA, nics[b].NUMA), cmp.Compare(nics[a].PCIAddress, nics[b].PCIAddress))
	})
	return order
}

func hopsOf(hops []accel.PCIeHop) (out []pci.Hop) {
	for _, h := range hops {
		out = append(out, pci.Hop{
			Address: h.Address, Link: pci.Link{Speed: h.Speed, Width: h.Width, MaxSpeed: h.MaxSpeed, MaxWidth: h.MaxWidth},
		})
	}
	return out
}

func listAddresses(hops []pci.Hop) (out []string) {
	for _, h := range hops {
		out = append(out, h.Address)
	}
	return out
}

func pairOf(d *accel.GDR, p accel.GDRPair) Pair {
	return Pair{
		GPU: d.GPUs[p.GPU].Index, Device: d.NICs[p.NIC].Device, Topology: p.Topology, Distance: p.Distance,
		Mechanism: p.Mechanism,
		Eligible:  p.Eligible, Send: p.Send, Receive: p.Receive, Reason: p.Reason, Words: p.Words, Remedy: p.Remedy,
		Detour: detourOf(d, &p),
	}
}

// detour returns the detour of the pair with the best NIC.
func (g *GPU) detour() string {
	if g.Best == nil {
		return ""
	}
	return g.Best.Detour
}

// detourOf returns the reason why traffic between a GPU and a NIC below one switch passes the root complex; empty if it
// does not, or if that is unknown.
func detourOf(d *accel.GDR, p *accel.GDRPair) string {
	nic, gpu := &d.NICs[p.NIC], &d.GPUs[p.GPU]
	translates, _ := pci.Translates(nic.IOMMU)
	if p.Receive != "direct" || p.Topology != "PIX" && p.Topology != "PXB" || d.Virtual {
		return ""
	}
	var why []string
	if nic.Redirect != nil && *nic.Redirect {
		why = append(why, "ACS redirection")
	}
	if translates && !gpu.Coupled {
		why = append(why, "IOMMU translation")
	}
	return strings.Join(why, " and ")
}

func (m *Machine) gpuOf(d *accel.GDR, g *accel.GDRGPU, hops []pci.Hop) GPU {
	out := GPU{
		Index: g.Index, UUID: g.UUID, Address: g.PCIAddress, Model: g.Model, NUMA: g.NUMA, Coupled: g.Coupled, IOMMU: g.IOMMU,
		Reason: g.Best.Reason, Words: g.Best.Words, Remedy: g.Best.Remedy,
	}
	if g.Best.NIC >= 0 {
		out.Best = new(pairOf(d, g.Best))
	}
	out.CanSend, out.CanReceive = g.Best.CanSend, g.Best.CanReceive
	for _, o := range g.Best.Obstacles {
		out.Obstacles = append(out.Obstacles, Obstacle{
			o.Kind, o.Reason, o.Words, o.Remedy, o.Send, o.Receive, o.After,
			pathInWords(o.Send, o.Receive) + " (" + o.After + ")",
		})
	}
	if g.Process != nil {
		out.Evaluated = g.Process.PID
	}
	out.Transport = transportOf(g)
	for _, p := range pci.Pairs(hops) { // idle GPUs lower the link speed, not the width
		if p.MaxWidth != 0 && p.Width < p.MaxWidth {
			out.Marks = append(out.Marks, describeNarrow(p))
		}
	}
	return out
}

// pathInWords returns the data path of a GPU in words.
func pathInWords(send, receive string) string {
	switch {
	case receive == "staging":
		return "through host memory"
	case receive == "direct" && send == "direct":
		return "direct"
	case receive == "direct" && send == "staging":
		return "direct for receiving, sent through host memory"
	case receive == "direct":
		return "direct for receiving, unknown for sending"
	}
	return "unknown"
}

// Limited reports whether data of the GPU passes host memory in at least one direction, and the hardware can do no
// better.
func (g *GPU) Limited() bool {
	stages, lost := false, false
	if b := g.Best; b != nil {
		stages = b.Send == "staging" || b.Receive == "staging"
		lost = b.Send == "staging" && g.CanSend != "staging" || b.Receive == "staging" && g.CanReceive != "staging"
	}
	return stages && !lost
}

func nicOf(nic *accel.GDRNIC, hops []pci.Hop) NIC {
	out := NIC{
		Device: nic.Device, Address: nic.PCIAddress, Role: nic.Role, NUMA: nic.NUMA, Active: nic.Active,
		Redirect: nic.Redirect, IOMMU: nic.IOMMU, DMABUF: nic.DMABUF,
	}
	if s := nic.Settings; s != nil {
		out.MaxPayload, out.MaxReadRequest, out.RelaxedOrdering = s.MaxPayload, s.MaxReadRequest, &s.RelaxedOrdering
	}
	if len(hops) > 1 {
		out.Capable = pci.Capable(hops[len(hops)-1])
		out.Available, out.LimitedBy, _ = pci.Available(hops)
	}
	for _, p := range pci.Pairs(hops) {
		if p.MaxWidth != 0 && p.Width < p.MaxWidth || p.MaxSpeed != 0 && p.Speed < p.MaxSpeed {
			out.Marks = append(out.Marks, describeNarrow(p))
		}
	}
	for _, at := range nic.RedirectAt {
		out.Marks = append(out.Marks, "ACS redirection at "+at+": data between GPU and NIC passes the root complex")
	}
	return out
}

// addPorts sums the rates of the ACTIVE ports of each device, and marks devices whose PCIe bandwidth is lower.
// Functions on one cable share its load.
func (m *Machine) addPorts(ib *snapshot.InfiniBand) {
	if ib == nil {
		return
	}
	available, physical := map[string]float64{}, map[string]string{} // by physical port; by device
	for i := range ib.Devices {
		d := &ib.Devices[i]
		nic := slices.IndexFunc(m.NICs, func(n NIC) bool { return n.Device == d.Name })
		if nic < 0 {
			continue
		}
		for j := range d.Ports {
			p := &d.Ports[j]
			if p.State != nil && *p.State == 4 {
				m.NICs[nic].Rate += rateOf(p)
			}
			if w := physicalPort(p); w != "" && physical[d.Name] == "" {
				physical[d.Name] = w
				available[w] += m.NICs[nic].Available
			}
		}
	}
	for i := range m.NICs {
		n := &m.NICs[i]
		have := cmp.Or(available[physical[n.Device]], n.Available)
		if n.Available != 0 && have < n.Rate {
			n.Marks = append(n.Marks, describeLimit(n, have))
		}
	}
}

// rateOf returns the rate of a port, for a bond the sum of its members with link; 0: unknown.
func rateOf(p *snapshot.Port) (bits float64) {
	for i := range p.Netdev {
		n := &p.Netdev[i]
		if n.Member && n.Rate != nil && (n.Up == nil || *n.Up) {
			bits += *n.Rate
		}
	}
	if bits == 0 && p.Rate != nil {
		bits = *p.Rate
	}
	return bits
}

func physicalPort(p *snapshot.Port) string {
	for i := range p.Netdev {
		if p.Netdev[i].Wire != "" && !p.Netdev[i].Member {
			return p.Netdev[i].Wire
		}
	}
	return p.Wire
}
