package snapshot

import (
	"time"

	"rdma_exporter/internal/transceiver"
)

// Optics is the modules and cables in the cages of Ethernet ports.
type Optics struct {
	Cages []Cage
}

// CageState says what came of reading a module.
type CageState string

// The states of a cage.
const (
	CageUnread      CageState = ""               // not read yet, or not permitted
	CagePresent     CageState = "present"        // the module answers
	CageEmpty       CageState = "absent"         // the driver says that there is none
	CageBusy        CageState = "busy"           // its firmware is being written, or its bus is taken
	CageUnreadable  CageState = "unreadable"     // there is a module, and reading it fails
	CageNoAnswer    CageState = "no_answer"      // reading fails, and the driver does not tell whether there is a module
	CageUnknown     CageState = "unknown_layout" // there is a module, whose memory follows no layout that is known here or to the driver
	CageUnsupported CageState = "unsupported"    // the driver does not read modules
)

// Cage is that of a port, or of a member of its bond.
type Cage struct {
	Device string
	Port   int
	Netdev string
	State  CageState
	Err    string // why the last reading failed; empty where it did not
	// Module is what is known of the module; nil where nothing is. It is shared and never changes. Its readings are left out once they
	// are too old.
	Module *transceiver.Module
	Age    *time.Duration // of the readings; nil where the module has none, or none were taken
	// First is the netdev of the port whose alerts stand for a module that several ports show; empty for that one, and for a module
	// that one port shows.
	First string
}

// States are those that hold: of the cage, and what its module says of itself. Of a cage that is not read, or not by the driver, there
// is none.
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
