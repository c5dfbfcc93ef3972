package transceivers

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/collector/counters"
	"rdma_exporter/collector/shared"
	"rdma_exporter/collector/sysfs"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/wire"
	"rdma_exporter/internal/transceiver"
)

// freshInterval is how long static data of a transceiver is kept. A replacement without a carrier change (no light) is
// detected by then.
const freshInterval = 10 * time.Minute

// cage is the transceiver cage of one netdev. It belongs to the reader of transceivers, except seen (guarded by the
// collector's mutex).
type cage struct {
	counters.NetdevTarget
	link       cageLink
	pages      transceiver.Pages
	began      time.Time     // when pages was begun
	lastRead   time.Time     // the last time
	next       time.Time     // of the next read
	took       time.Duration // kernel time of the last read's requests
	quarantine reading.Quarantine
	noResponse wire.CageState // why the module did not respond, as far as the driver reports
	seen       cageSeen
}

// cageLink changes if the transceiver may be another one.
type cageLink struct {
	inode   uint64 // of the interface
	carrier uint64 // carrier changes
}

// cageSeen is the result of a read. Immutable.
type cageSeen struct {
	wire.Cage
	readAt time.Time        // of the readings; zero where there are none
	kept   time.Duration    // how long they are served
	issues []snapshot.Issue // of the last read
	held   uint64           // items in quarantine
}

func newCage(t counters.NetdevTarget) *cage {
	return &cage{
		NetdevTarget: t, noResponse: wire.CageNoAnswer,
		seen: cageSeen{Cage: wire.Cage{Device: t.Device, Port: t.Port, Netdev: t.Netdev}},
	}
}

// at returns the part that may be served at a given time.
func (s *cageSeen) at(now time.Time) wire.Cage {
	out := s.Cage
	if out.Module == nil || s.readAt.IsZero() {
		return out
	}
	age := max(0, now.Sub(s.readAt))
	if out.Age = &age; age > s.kept {
		m := *out.Module
		m.Temperature, m.Voltage, m.Lanes, m.HostLanes, m.DataPaths = nil, nil, nil, nil, nil
		m.State, m.Fault, m.LowPower, m.NotReady = "", "", nil, false
		out.Module = &m
	}
	return out
}

// eepromDir names the requests for the module of a netdev, as captures do.
func eepromDir(netdev string) string { return sysfs.EthtoolDir(netdev) + "/eeprom" }

// identifier is the first request to a module: its kind, and whether it has pages. Every module answers it.
var identifier = transceiver.Ref{Address: transceiver.AddressA0, Length: 3}

func itemOf(ref transceiver.Ref) string {
	return fmt.Sprintf("%02x-%02x-%d:%d", ref.Address, ref.Page, ref.Bank, ref.Offset)
}

// update reads the cage. An item that failed twice is quarantined; a cage without any answer is quarantined until its
// link changes, or the driver reports another state.
func (g *cage) update(r *reading.Reader) cageSeen {
	before, devices := len(r.Issues), r.Quarantine
	r.Quarantine, g.took = &g.quarantine, 0
	seen := g.seen
	if g.detectChange(r) {
		seen.Module, seen.State = nil, wire.CageUnread
	}
	if g.mayAnswer(r) {
		g.outcome(r, &seen, g.read(r))
	}
	seen.held, seen.issues = g.quarantine.Items(r.Now()), slices.Clone(r.Issues[before:])
	r.Quarantine, r.Issues = devices, r.Issues[:before]
	return seen
}

// detectChange discards static data if the transceiver may be another one, and from time to time for the same one. It
// reports whether it may be another one.
func (g *cage) detectChange(r *reading.Reader) (another bool) {
	now := r.Now()
	link := cageLink{carrier: shared.CarrierChanges(r, g.Netdev)}
	link.inode, _ = r.Host.Files.Identity(sysfs.NetDir + g.Netdev)
	if another = link != g.link; another {
		g.quarantine.Release(sysfs.EthtoolDir(g.Netdev))
		g.link = link
	}
	if another || now.Sub(g.began) >= freshInterval {
		g.pages, g.began = transceiver.Pages{}, now
	}
	return another
}

// mayAnswer reports whether to query the module.
func (g *cage) mayAnswer(r *reading.Reader) bool {
	dir, before := eepromDir(g.Netdev), g.noResponse
	if !g.quarantine.Held(dir, itemOf(identifier), r.Now()) {
		return true
	}
	if g.askDriver(r); g.noResponse == before {
		return false
	}
	g.quarantine.Release(dir)
	return true
}

// maxPlans bounds the number of dependent reads: three in CMIS.
const maxPlans = 8

// read reads unknown static data of the module, and its monitors.
func (g *cage) read(r *reading.Reader) error {
	for range maxPlans {
		static, monitors := transceiver.Plan(&g.pages)
		if len(static) == 0 {
			return g.fetch(r, monitors)
		}
		if err := g.fetch(r, static); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: module memory map has no end", access.ErrMalformed)
}

// fetch makes requests. A page that returns an error is missing or unavailable; the lower memory always exists.
func (g *cage) fetch(r *reading.Reader, refs []transceiver.Ref) error {
	for _, ref := range refs {
		for ref.Length > 0 {
			b, err := g.request(r, ref)
			if err != nil {
				if !errors.Is(err, errNotAsked) && (inLowerMemory(ref) || !isRefusal(err)) {
					return err
				}
				g.pages.Refuse(ref)
				break
			}
			g.pages.Put(ref, b)
			ref.Offset, ref.Length = ref.Offset+uint8(len(b)), ref.Length-uint8(len(b))
		}
	}
	return nil
}

func inLowerMemory(ref transceiver.Ref) bool {
	return ref.Address == transceiver.AddressA0 && ref.Offset < 128
}

// errNotAsked is the error of bytes that are quarantined, or that the driver would read from elsewhere.
var errNotAsked = errors.New("not requested")

// isRefusal reports whether err is an answer, not a failure to query.
func isRefusal(err error) bool { return access.Refused(err) || access.IsAbsent(err) }

// request reads some bytes. mlx5 ignores the bank and would read the first one
// (drivers/net/ethernet/mellanox/mlx5/core/port.c).
func (g *cage) request(r *reading.Reader, ref transceiver.Ref) ([]byte, error) {
	dir, now := eepromDir(g.Netdev), r.Now()
	if ref.Bank != 0 && g.Driver == "mlx5_core" || g.quarantine.Held(dir, itemOf(ref), now) {
		return nil, errNotAsked
	}
	ctx, eth, netdev := r.Ctx, r.Host.Ethtool, g.Netdev
	var b []byte
	var err error
	var took time.Duration
	if refused := r.UnderRTNL(source.ModuleEEPROM, 1, func() {
		start := time.Now()
		b, err = eth.ModuleEEPROM(ctx, netdev, ref)
		took = time.Since(start)
	}); refused != nil {
		return nil, refused // b may still be written to
	}
	g.took += took
	g.quarantine.Note(dir, itemOf(ref), now, err)
	if err != nil && !inLowerMemory(ref) && !access.IsAbsent(err) {
		r.From(source.ModuleEEPROM).Issue(err)
	}
	return b, err
}

// outcome updates the state with the result of a read. A module that does not respond is read from scratch.
func (g *cage) outcome(r *reading.Reader, seen *cageSeen, err error) {
	if shared.Blocked(err) {
		return // already reported; the previous state is kept
	}
	if err != nil && g.gone(r) {
		seen.Module, seen.State, seen.Err = nil, wire.CageUnread, ""
		return
	}
	eeprom := r.From(source.ModuleEEPROM)
	seen.Err = ""
	if err != nil {
		seen.Err = err.Error()
	}
	switch {
	case err == nil:
		m := transceiver.Decode(&g.pages)
		seen.Module, seen.State, seen.readAt = &m, wire.CagePresent, time.Time{}
		if m.Unknown {
			seen.State = wire.CageUnknown
		}
		if _, monitors := transceiver.Plan(&g.pages); len(monitors) > 0 {
			seen.readAt = r.Host.Now()
		}
		for _, what := range m.Garbled {
			eeprom.Issue(access.ErrGarbled(eepromDir(g.Netdev)+": "+what, []byte{0xff, 0xff}))
		}
		return
	case netlink.Busy(err):
		seen.State = wire.CageBusy
		return
	case access.NotPermitted(err):
		seen.State, seen.Module = wire.CageUnread, nil
		eeprom.Issue(err)
		return
	}
	g.pages = transceiver.Pages{}
	if seen.State = g.failed(r, err); seen.State == wire.CageUnreadable {
		eeprom.Issue(err)
	} else {
		seen.Module = nil
	}
}

// gone reports whether the netdev was renamed or removed: its cage is unknown under that name.
func (g *cage) gone(r *reading.Reader) bool {
	_, err := r.Host.Files.Identity(sysfs.NetDir + g.Netdev)
	return err != nil && access.IsAbsent(err)
}

// failed interprets a module that does not respond. mlx5 returns EINVAL for an identifier that it does not support
// (mlx5_query_module_id).
func (g *cage) failed(r *reading.Reader, err error) wire.CageState {
	reason := access.ReasonOf(err)
	if reason == access.Absent {
		return wire.CageUnsupported
	}
	g.askDriver(r)
	switch {
	case g.noResponse == wire.CageEmpty:
		return wire.CageEmpty
	case reason == access.Unsupported:
		return wire.CageUnsupported
	case reason == access.Invalid && g.Driver == "mlx5_core":
		return wire.CageUnknown
	case reason == access.Gone && g.noResponse == wire.CageNoAnswer:
		return wire.CageEmpty
	}
	return g.noResponse
}

// noCable is ETHTOOL_LINK_EXT_STATE_NO_CABLE of enum ethtool_link_ext_state.
const noCable = 4

// askDriver reads the driver's link state for a cage whose module does not respond. The driver reports a reason only
// for interfaces that are administratively up.
func (g *cage) askDriver(r *reading.Reader) {
	s, made := shared.AskEthtool(r, source.LinkState, r.Host.Ethtool.LinkState, g.Netdev)
	switch {
	case !made:
	case s.ExtState != nil && *s.ExtState == noCable:
		g.noResponse = wire.CageEmpty
	case s.ExtState != nil, s.Link != nil && *s.Link == 1:
		g.noResponse = wire.CageUnreadable
	default:
		g.noResponse = wire.CageNoAnswer
	}
}
