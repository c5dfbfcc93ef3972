package shared

import (
	"rdma_exporter/collector/counters"
	"rdma_exporter/internal/expect"
	"rdma_exporter/internal/peers"
)

// State is what the collectors of one set share. Each field says who provides it -> who uses it.
type State struct {
	Options
	Site    *SiteConfig           // the configuration file, as it concerns this host -> all
	Devices *Roster               // RDMA devices of a round, and what they are: the first that reads -> all
	Stats   *counters.NetdevStats // statistics of netdevs: ethernet -> infiniband
	Links   *CommonLinks          // modes of both ends of InfiniBand links: neighbour -> infiniband
	Last    *LastRound            // devices, GPUs: infiniband -> gdr, pcie, kernellog; jobs: gdr -> infiniband, kernellog
	GPUs    *GPUReadings          // NVML: gpu -> gdr, pcie
	Retries *Retries              // exceeded retries: hwcounters -> peers
}

// NewState returns the state of a new set of collectors.
func NewState(o Options) *State {
	if o.Memory == nil {
		o.Memory = expect.NewMemory(expect.Data{})
	}
	if o.Peers == nil {
		o.Peers = peers.New()
	}
	conf := &SiteConfig{Store: o.Site, Hostname: o.Hostname}
	return &State{
		Options: o, Site: conf, Devices: NewRoster(o), Stats: counters.NewNetdevStats(),
		Links: NewCommonLinks(), Last: &LastRound{}, GPUs: NewGPUReadings(o), Retries: &Retries{},
	}
}
