package fault

import (
	"strings"

	"rdma_exporter/internal/words"
)

// LinkLayer is the link layer of a port of which another one is expected.
type LinkLayer struct {
	Has      string // InfiniBand or Ethernet; empty: unknown
	Expected string
	Basis    string // of the expectation
	past     bool   // the basis is the port's own past
}

// Siblings of a port have the same position on cards of the same board.
const (
	layersAlike = `port:rdma_port_link_layer:alike{$port}`
	layerOdd    = layersAlike + ` and on (cluster, instance, job, port, link_layer, board_id, function) ` +
		`port:rdma_port_link_layer:odd`
)

// linkTypes are the settings of LINK_TYPE.
var linkTypes = map[string]string{"InfiniBand": "1", "Ethernet": "2"}

// OtherLinkLayer returns the link layer of the port and the expected one; nil unless they are known to differ.
func (f *Fault) OtherLinkLayer() *LinkLayer {
	has := f.LabelOf(`max by (link_layer) (rdma_port_info{$port})`, "link_layer")
	if before := f.LabelOf(`rdma_port_earlier_link_layer_info{$port}`, "link_layer"); before != "" {
		return &LinkLayer{has, before, "as before", true}
	}
	if !f.Has(layerOdd) {
		return nil
	}
	expected := "Ethernet"
	if has == expected {
		expected = "InfiniBand"
	}
	siblings := strings.Join(f.siblingsWith(expected), ", ")
	return &LinkLayer{has, expected, "by siblings (" + siblings + ", same board)", false}
}

// siblingsWith returns the siblings that have a link layer.
func (f *Fault) siblingsWith(layer string) []string {
	return words.Map(f.Rows(`port:rdma_port_link_layer:alike{link_layer="`+layer+`",$host} `+
		`and on (port, board_id, function) `+layersAlike, "device"), PortName)
}

// Summary names both.
func (l *LinkLayer) Summary() string { return "link layer " + l.Has + " (expected " + l.Expected + ")" }

// Evidence is the line on the expectation.
func (l *LinkLayer) Evidence() string {
	return l.Has + ", expected " + l.Expected + ", " + l.Basis + "."
}

// Contrast says where the other one is from.
func (l *LinkLayer) Contrast() string {
	if l.past {
		return "and was " + l.Expected + " before"
	}
	return "its siblings of the same board for " + l.Expected
}

// Diagnose returns the command that shows the firmware's setting.
func (l *LinkLayer) Diagnose(f *Fault) string {
	return "mlxconfig" + f.mlxDevice() + " query | grep LINK_TYPE # as root, needs MFT"
}

// Action returns how the expected link layer is set.
func (l *LinkLayer) Action(f *Fault) string {
	device := f.mlxDevice()
	return "Drain the host and set the link type: mlxconfig" + device + " set LINK_TYPE_P1=" + linkTypes[l.Expected] +
		" (" + l.Expected + "); LINK_TYPE_P2 for the second port of a card. Then reset the card: mlxfwreset" + device +
		" reset, or power the host off and on."
}

// Keep returns how the present link layer becomes the expected one.
func (l *LinkLayer) Keep(f *Fault) string {
	if l.past {
		return "run rdma_exporter accept " + f.PastedPort()
	}
	return "pin the role of the port in --config.file"
}

// mlxDevice returns the option that selects the device in commands of MFT.
func (f *Fault) mlxDevice() string {
	pci := f.LabelOf(`max by (pci_address) (rdma_device_info{$device})`, "pci_address")
	return When(pci != "", " -d "+pci)
}
