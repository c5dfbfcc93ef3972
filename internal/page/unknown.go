package page

import (
	"slices"

	"rdma_exporter/internal/snapshot"
)

func stateText(p *Port) value {
	if p.State == "" {
		return unknown("port state could not be read")
	}
	return value{Text: p.State}
}

// rateText is the rate of a link; one that is down has none.
func rateText(p *Port) value {
	switch {
	case p.Rate != nil:
		return value{Text: bits(*p.Rate)}
	case p.State != "" && p.State != portStates[portActive]:
		return notApplicable
	}
	return unknown("rate not reported by the driver")
}

// pauseText is the share of time that a port pauses its switch and is paused. InfiniBand has credits instead.
func pauseText(p *Port) value {
	x := p.Recent
	switch {
	case x.PausesSwitch != nil || x.PausedBySwitch != nil:
		return value{Text: both(share(x.PausesSwitch), share(x.PausedBySwitch))}
	case p.LinkLayer != "Ethernet":
		return notApplicable
	}
	return unknown("PFC pause duration not exposed by this driver")
}

// noModules are the reasons why a port has no transceiver data, by what came of reading its cage.
var noModules = map[snapshot.CageState]string{
	snapshot.CageUnread:      "transceiver not read yet, or permission denied",
	snapshot.CageUnsupported: "no transceiver data from this driver",
}

// counted are the ports with a counter of errors in the last round.
func (f families) counted() map[PortKey]bool {
	out := map[PortKey]bool{}
	for _, c := range errorCounters {
		f.each("rdma_port_"+c+"_total", func(labels []string, _ float64) { out[PortKey{labels[0], labels[1]}] = true })
	}
	return out
}

func (in *Input) noModule(p *Port) value {
	if in.Node.Optics == nil {
		return unknown("transceivers are not read")
	}
	for _, c := range in.Node.Optics.Cages {
		if reason := noModules[c.State]; reason != "" && c.Device == p.Device && c.Port == p.Number {
			return unknown(reason)
		}
	}
	if p.LinkLayer != "Ethernet" && !slices.ContainsFunc(p.Netdevs, func(n string) bool { return n != "" }) {
		return unknown("no network interface to read the transceiver through")
	}
	return unknown("no transceiver cage found for this port")
}
