package kernellog

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Pattern is a message of the kernel.
type Pattern struct {
	Kind    Kind
	Meaning string
	Follows string // what usually comes next; empty: nothing in particular
	Source  string // file and function of the kernel or driver, with the versions that have the text

	drivers map[string]bool // of the prefix; nil: any or none. That of a line with an RDMA device alone is not known
	needle  string          // that each matching text contains, or one of several, separated by |; empty: any
	form    form            // of the text; groups pci, netdev, device, driver are the object, all others the detail
}

// form is an expression that is compiled at its first use: a healthy host prints few of the messages.
type form func() *regexp.Regexp

func of(drivers ...string) map[string]bool {
	m := map[string]bool{}
	for _, d := range drivers {
		m[d] = true
	}
	return m
}

var (
	mlx5      = of("mlx5_core", "mlx5_ib")
	mlx4      = of("mlx4_core", "mlx4_en", "mlx4_ib")
	broadcom  = of("bnxt_en", "bnxt_re")
	intel     = of("ice", "irdma", "i40e")
	pensando  = of("ionic")
	hisilicon = of("hns3", "hns_roce", "hns_roce_hw_v2")
	amazon    = of("efa", "ena")
	pcieports = of("pcieport")
)

// Patterns are the messages. The first that matches counts.
var Patterns = slices.Concat(mellanoxPatterns, broadcomPatterns, intelPatterns, othersPatterns,
	corePatterns, pciePatterns, gpuPatterns)

// candidate is a pattern that a line may match.
type candidate struct {
	*Pattern
	needles []string
}

// has reports whether a text has a needle of the pattern.
func (c *candidate) has(text string) bool {
	for _, n := range c.needles {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}

// byDriver are the patterns that a line of a driver may match: of the drivers that a pattern names, of all others (""),
// and of an unknown driver of an RDMA device ("*").
var byDriver = sync.OnceValue(func() map[string][]candidate {
	m := map[string][]candidate{"": nil, "*": nil}
	for _, p := range Patterns {
		for d := range p.drivers {
			m[d] = nil
		}
	}
	for d := range m {
		for i := range Patterns {
			if p := &Patterns[i]; p.drivers == nil || p.drivers[d] || d == "*" {
				m[d] = append(m[d], candidate{p, strings.Split(p.needle, "|")})
			}
		}
	}
	return m
})

// candidates are the patterns that the message of a line with this prefix may match, in order.
func (e *Event) candidates() []candidate {
	driver := e.Driver
	if driver == "" && e.Device != "" {
		driver = "*"
	}
	if patterns, ok := byDriver()[driver]; ok {
		return patterns
	}
	return byDriver()[""]
}
