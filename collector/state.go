package collector

import (
	"rdma_exporter/internal/expect"
)

// state is what the collectors of one set share. Each field says who provides it -> who uses it.
type state struct {
	Options
	Site    *siteConfig  // the configuration file, as it concerns this host -> all
	Devices *roster      // RDMA devices of a round: the first that reads -> all
	NVLink  *nvlink      // those that manage NVLink switches: the first that asks -> all
	Stats   *netdevStats // statistics of netdevs: ethernet -> infiniband
	Links   *commonLinks // modes of both ends of InfiniBand links: neighbour -> infiniband
	Last    *lastRound   // devices and GPUs: infiniband -> gdr, pcie, kernellog; jobs: gdr -> infiniband, kernellog
	GPUs    *gpuReadings // NVML: gpu -> gdr, pcie
}

// newState returns the state of a new set of collectors.
func newState(o Options) *state {
	if o.Memory == nil {
		o.Memory = expect.NewMemory(expect.Data{})
	}
	conf := &siteConfig{o.Site, o.Hostname}
	return &state{
		Options: o, Site: conf, Devices: newRoster(o), NVLink: newNVLink(conf.settings), Stats: newNetdevStats(),
		Links: newCommonLinks(), Last: &lastRound{}, GPUs: newGPUReadings(o),
	}
}
