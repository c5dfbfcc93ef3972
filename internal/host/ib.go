package host

import (
	"context"
	"strings"

	"rdma_exporter/internal/lazy"
	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/mad/perf"
	"rdma_exporter/internal/snapshot"
)

// Subnet sends management datagrams through an InfiniBand port. All have the method Get. The port's umad is accessible
// by root only.
type Subnet interface {
	// Ends queries both ends of a port's link for attributes of subnet management (IBA 14.2.5), at most one directed hop
	// away: four datagrams, and one more for a switch. If the link is down the result has no far end, which is not an
	// error.
	Ends(ctx context.Context, device string, port int) (IBLink, error)
	// Counters queries an agent of performance management (IBA 16.1): one datagram if all counters are 64-bit, otherwise
	// two, and one more the first time.
	Counters(ctx context.Context, device string, port int, a *Agent) (IBCounters, error)
	// PortFEC queries a port for the FEC in use, and its agent for the errors before and after FEC, if both have the
	// capability: up to two datagrams, and up to two more the first time. Without link and without capability the answer
	// is empty.
	PortFEC(ctx context.Context, device string, port int, a *Agent) (IBFEC, error)
	// PortSettings queries a local port for what the subnet manager has set (IBA 14.2.5.6, 14.2.5.9): two datagrams.
	PortSettings(ctx context.Context, device string, port int) (IBPortSettings, error)
	// Manager queries the subnet manager at a LID for SMInfo (IBA 14.2.5.13): one datagram.
	Manager(ctx context.Context, device string, port int, lid uint16) (IBManager, error)
}

// IBLink is the answers of both ends of a link; nil or empty without a far end.
type IBLink struct {
	Own            IBEnd
	SMLID          *uint64 // of the master subnet manager, PortInfo of the local port
	Far            IBEnd
	FarType        *uint64 // NodeInfo.NodeType: 1 channel adapter, 2 switch, 3 router
	FarPort        *uint64 // NodeInfo.LocalPortNum
	FarLID         *uint64 // PortInfo.LID; of a switch, that of its port 0
	FarGUID        string  // NodeInfo.NodeGUID, xxxx:xxxx:xxxx:xxxx
	FarDescription string  // NodeDescription
	Requests       int     // datagrams sent, answered or not
}

// IBEnd is the link as in the PortInfo of one end.
type IBEnd struct {
	Enabled   IBSets
	Supported IBSets
	Active    IBSets // nil if the link is down
}

// IBSets are sets of mad.Widths and mad.Speeds; nil: unknown.
type IBSets struct {
	Widths *uint64
	Speeds *uint64
}

// Agent is an agent of performance management, and a port of its node.
type Agent struct {
	LID  uint16 // address of the agent
	Port int    // port whose counters are queried
	// TransmitWait: PortCounters has it although the agent does not announce it.
	TransmitWait bool

	// Far: it is at the far end of the link of the local port, not the local port.
	Far bool

	Info *perf.Info // which counters it has; nil until it is queried
	Fec  *bool      // the port has PortInfoExtended; nil until it is queried
}

// IBCounters are the counters of a port that an agent has. Others are absent.
type IBCounters struct {
	Stats []Stat // by their names in sysfs, ports/N/counters
	Wide  bool   // errors and transmit wait are 64-bit and do not saturate
}

// IBManager is a subnet manager, as in its SMInfo (IBA 14.2.5.13).
type IBManager struct {
	State    *uint64 // 0 not active, 1 discovering, 2 standby, 3 master
	Priority *uint64 // 0 to 15: the highest becomes the master
	Activity *uint64 // increases with each datagram sent, answers included
	GUID     string  // of its port, xxxx:xxxx:xxxx:xxxx
}

// IBFEC is the answer to Subnet.PortFEC.
type (
	IBFEC    = snapshot.IBFEC
	FECCount = snapshot.FECCount
)

// IBPortSettings is the answer to Subnet.PortSettings.
type IBPortSettings = snapshot.IBPortSettings

// PortSettingsRequests is the number of datagrams of PortSettings without losses.
const PortSettingsRequests = 2

// Link is empty if one of them is unknown.
func (s IBSets) Link() mad.Link {
	if s.Widths == nil || s.Speeds == nil {
		return mad.Link{}
	}
	return mad.Link{Widths: mad.Widths(*s.Widths), Speeds: mad.Speeds(*s.Speeds)}
}

// System returns the name of the far node. Unmanaged switches of a model all have the same description: their name
// includes the GUID.
func (l *IBLink) System() string {
	if m := managed().FindStringSubmatch(l.FarDescription); m != nil {
		return m[1]
	}
	if l.FarDescription == "" || strings.HasSuffix(l.FarDescription, "Mellanox Technologies") {
		return strings.TrimSpace(l.FarDescription + " " + l.FarGUID)
	}
	return l.FarDescription
}

// Common returns the widths and speeds that both ends have enabled.
func (l *IBLink) Common() mad.Link { return l.Own.Enabled.Link().And(l.Far.Enabled.Link()) }

// Requests returns the maximum number of datagrams of a query without losses.
func (a *Agent) Requests() int {
	switch {
	case a.Info == nil:
		return 3
	case a.Info.Extended && !a.Info.ExtendedErrors:
		return 2
	}
	return 1
}

// FECRequests returns the maximum number of datagrams of a query without losses.
func (a *Agent) FECRequests() (n int) {
	switch {
	case a.Fec == nil:
		n = 2
	case !*a.Fec:
		return 0
	default:
		n = 1
	}
	switch {
	case a.Info == nil:
		n += 2
	case a.Info.FEC:
		n++
	}
	return n
}

// managed matches the description of a managed NVIDIA switch: MF0;NAME:MODEL/UNIT.
var managed = lazy.Regexp(`^MF0;([^:]+):`)
