package nccl

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/pci"
)

// Topology is a NCCL topology file with the PCI functions of a machine: NCCL_TOPO_FILE, or that of a virtual machine,
// /var/run/nvidia-topologyd/virtualTopology.xml.
type Topology struct {
	Places map[string]pci.NCCLPlace // by address
}

// Has reports whether the file has a PCI address.
func (t *Topology) Has(address string) bool {
	if t == nil {
		return false
	}
	_, ok := t.Places[address]
	return ok
}

// ErrTopology is wrapped by errors of invalid topology files.
var ErrTopology = errors.New("not a NCCL topology file")

// ParseTopology parses a topology file: <system> with a <cpu numaid> for each NUMA node, and nested <pci busid> for
// switches and functions (src/graph/xml.cc).
func ParseTopology(r io.Reader) (*Topology, error) {
	t := &Topology{Places: map[string]pci.NCCLPlace{}}
	var open []string // open elements
	var above []string
	numa, system := 0, false
	err := pci.TopologyElements(r, func(e xml.StartElement) {
		open = append(open, e.Name.Local)
		switch e.Name.Local {
		case "system":
			system = true
		case "cpu":
			if n, err := strconv.Atoi(pci.TopologyAttribute(e, "numaid")); err == nil {
				numa = max(0, n)
			}
		case "pci":
			address := strings.ToLower(pci.TopologyAttribute(e, "busid"))
			t.Places[address] = pci.NCCLPlace{Switches: slices.Clone(above), NUMA: numa}
			above = slices.Insert(above, 0, address)
		}
	}, func() {
		if open[len(open)-1] == "pci" {
			above = above[1:]
		}
		open = open[:len(open)-1]
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTopology, err)
	}
	if !system {
		return nil, fmt.Errorf("%w: <system> missing", ErrTopology)
	}
	return t, nil
}
