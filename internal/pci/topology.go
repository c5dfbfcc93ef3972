package pci

import (
	"encoding/xml"
	"errors"
	"io"
)

// Limits of an NCCL topology file: a machine has some hundred elements, nested no deeper than its PCI tree. The
// ancestors of each function are stored, so that the depth matters as much as the number.
const (
	topologyDepth    = 32
	topologyElements = 4096
)

// ErrTopologyBounds is the error of a topology file larger than that of any machine.
var ErrTopologyBounds = errors.New("more than 4096 elements, or nested deeper than 32")

// TopologyElements iterates over the elements of an NCCL topology file (src/graph/xml.cc). The error is that of
// malformed XML, or ErrTopologyBounds.
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

// TopologyAttribute returns an attribute of an element; empty if missing.
func TopologyAttribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
