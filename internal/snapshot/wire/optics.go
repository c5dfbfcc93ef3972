package wire

import (
	"time"

	"rdma_exporter/internal/transceiver"
)

// Optics is the modules and cables in the cages of Ethernet ports.
type Optics struct {
	Cages []Cage
}

// CageState is the result of reading a module.
type CageState string

// The states of a cage.
const (
	CageUnread     CageState = ""           // not read yet, or permission denied
	CagePresent    CageState = "present"    // the module answers
	CageEmpty      CageState = "absent"     // no module, according to the driver
	CageBusy       CageState = "busy"       // its firmware is being written, or its bus is in use
	CageUnreadable CageState = "unreadable" // a module is present, reading it fails
	// Reading fails, and the driver does not report whether a module is present.
	CageNoAnswer CageState = "no_answer"
	// A module is present; its memory layout is not supported here or by the driver.
	CageUnknown     CageState = "unknown_layout"
	CageUnsupported CageState = "unsupported" // the driver cannot read modules
)

// Cage is the cage of a port, or of a member of its bond.
type Cage struct {
	Device string
	Port   int
	Netdev string
	State  CageState
	Err    string // error of the last reading; empty: none
	// Module is the decoded module; nil: unknown. It is shared and immutable. Readings that are too old are removed.
	Module *transceiver.Module
	Age    *time.Duration // of the readings; nil if the module has none, or none were taken
	// First is the port whose alerts represent a module shared by several ports; empty on that port, and for a module of
	// one port.
	First string
}

// States returns the states of the cage and of its module. A cage that is not read, or not supported by the driver, has
// none.
func (c *Cage) States() (out []string) {
	if c.State == CageUnread || c.State == CageUnsupported {
		return nil
	}
	out = append(out, string(c.State))
	m := c.Module
	switch {
	case c.State != CagePresent || m == nil:
	case m.State != "":
		out = append(out, m.State)
	case m.NotReady:
		out = append(out, "not_ready")
	case m.LowPower != nil && *m.LowPower:
		out = append(out, "low_power")
	}
	return out
}
