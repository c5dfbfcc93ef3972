package pci

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
)

// TestTopologyBounds: a file named by a job costs no more than that of a machine.
func TestTopologyBounds(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat("<pci>", depth) + strings.Repeat("</pci>", depth)
	}
	for _, c := range []struct {
		name, text string
		begun      int
		out        bool
	}{
		{"as deep as may be", nested(topologyDepth), topologyDepth, false},
		{"deeper", nested(topologyDepth + 1), topologyDepth, true},
		{"as long as may be", strings.Repeat("<a/>", topologyElements), topologyElements, false},
		{"longer", strings.Repeat("<a/>", topologyElements+1), topologyElements, true},
		{"wide is not deep", strings.Repeat(nested(2), topologyDepth), 2 * topologyDepth, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun, ended := 0, 0
			err := TopologyElements(strings.NewReader(c.text), func(xml.StartElement) { begun++ }, func() { ended++ })
			if begun != c.begun || errors.Is(err, ErrTopologyBounds) != c.out || !c.out && (err != nil || ended != begun) {
				t.Errorf("%d begun, %d ended, %v", begun, ended, err)
			}
		})
	}
	if err := TopologyElements(strings.NewReader("<a></b>"), func(xml.StartElement) {}, func() {}); err == nil ||
		errors.Is(err, ErrTopologyBounds) {
		t.Errorf("broken: %v", err)
	}
}
