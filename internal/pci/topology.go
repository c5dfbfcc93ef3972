package pci

import (
	"encoding/xml"
	"errors"
	"io"
)

// Bounds of a topology file of NCCL: a machine's has some hundred elements, nested no deeper than its PCI tree. What a function has above it
// is kept for each, so that depth counts as much as number.
const (
	topologyDepth    = 32
	topologyElements = 4096
)

// ErrTopologyBounds is the error of a topology file that is larger than any machine.
var ErrTopologyBounds = errors.New("more than 4096 elements, or more than 32 one inside the other")

// TopologyElements goes through the elements of a topology file of NCCL (src/graph/xml.cc). The error is that of XML that is broken, or of
// a file out of bounds.
func TopologyElements(r io.Reader, begin func(xml.StartElement), end func()) error {
	depth, elements := 0, 0
	for d := xml.NewDecoder(r); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
			if elements++; depth > topologyDepth || elements > topologyElements {
				return ErrTopologyBounds
			}
			begin(e)
		case xml.EndElement:
			depth--
			end()
		}
	}
}

// TopologyAttribute is one of an element; empty where it has none of that name.
func TopologyAttribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
