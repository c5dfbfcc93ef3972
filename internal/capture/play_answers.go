package capture

import (
	"context"

	"rdma_exporter/internal/host"
)

// Port returns the recorded answer.
func (p *Player) Port(_ context.Context, device string, port int) (host.RDMAPort, error) {
	name := portPath(device, port)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.RDMAPort{}, err
	}
	return decodePort(name, b)
}

// System returns the recorded answer.
func (p *Player) System(context.Context) (host.RDMASystem, error) {
	b, err := p.Read(systemPath, nil)
	if err != nil {
		return host.RDMASystem{}, err
	}
	return decodeSystem(systemPath, b)
}

// Stats returns the recorded answer.
func (p *Player) Stats(_ context.Context, device string, port int, buf []host.Stat) ([]host.Stat, error) {
	return p.stats(statsPath(device, port), buf)
}

// NetdevStats returns the recorded answer.
func (p *Player) NetdevStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return p.stats(netdevStatsPath(netdev), nil)
}

// StandardStats returns the recorded answer.
func (p *Player) StandardStats(_ context.Context, netdev string) ([]host.Stat, error) {
	return p.stats(standardStatsPath(netdev), nil)
}

func (p *Player) stats(name string, buf []host.Stat) ([]host.Stat, error) {
	b, err := p.Read(name, nil)
	if err != nil {
		return nil, err
	}
	return decodeStats(name, b, buf[:0])
}

// Pause returns the recorded answer.
func (p *Player) Pause(_ context.Context, netdev string) (host.Pause, error) {
	name := pausePath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.Pause{}, err
	}
	return decodePause(name, b)
}

// FEC returns the recorded answer.
func (p *Player) FEC(_ context.Context, netdev string) (host.FEC, error) {
	name := fecPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.FEC{}, err
	}
	return decodeFEC(name, b)
}

// LinkModes returns the recorded answer.
func (p *Player) LinkModes(_ context.Context, netdev string) (host.LinkModes, error) {
	name := linkModesPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.LinkModes{}, err
	}
	return decodeLinkModes(name, b)
}

// Health returns the recorded answer.
func (p *Player) Health(context.Context) ([]host.HealthReporter, error) {
	b, err := p.Read(healthPath, nil)
	if err != nil {
		return nil, err
	}
	return decodeHealth(healthPath, b)
}

// LinkState returns the recorded answer.
func (p *Player) LinkState(_ context.Context, netdev string) (host.LinkState, error) {
	name := linkStatePath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.LinkState{}, err
	}
	return decodeLinkState(name, b)
}

// IEEE returns the recorded answer.
func (p *Player) IEEE(_ context.Context, netdev string) (host.DCBConfig, error) {
	name := dcbPath(netdev)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.DCBConfig{}, err
	}
	return decodeDCB(name, b)
}
