package gdr

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

// Topology is a file that tells NCCL where the functions of a machine are: NCCL_TOPO_FILE, or the one of a virtual machine,
// /var/run/nvidia-topologyd/virtualTopology.xml.
type Topology struct {
	places map[string]pci.Fabric // by address
}

func (t *Topology) has(address string) bool {
	if t == nil {
		return false
	}
	_, ok := t.places[address]
	return ok
}

// ErrTopology is wrapped by errors of files that are no topology.
var ErrTopology = errors.New("no NCCL topology")

// ParseTopology reads one: <system> with a <cpu numaid> for each NUMA node, and <pci busid> for each switch and function, one inside the
// other (src/graph/xml.cc).
func ParseTopology(r io.Reader) (*Topology, error) {
	t := &Topology{places: map[string]pci.Fabric{}}
	var open []string // elements that have begun
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
			t.places[address] = pci.Fabric{Switches: slices.Clone(above), NUMA: numa}
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
		return nil, fmt.Errorf("%w: there is no <system>", ErrTopology)
	}
	return t, nil
}
