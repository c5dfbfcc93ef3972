// Package collector holds the collectors of metrics. A collector is one domain: its Descs, its Read (fills a section of
// snapshot.Node from the host) and its Emit (turns that section into samples). To add one, copy an existing one and add
// it to All.
package collector

// All returns new collectors, in the order in which they appear everywhere.
func All(o Options) []*Collector {
	with := newState(o)
	return []*Collector{
		newInfiniBand(with),
		newHWCounters(with),
		newEthernet(with),
		newModules(with),
		newHealth(with),
		newQoS(with),
		newPCIe(with),
		newSensors(with),
		newTransceivers(with),
		newNeighbours(with),
		newGPU(with),
		newGDR(with),
		newSetup(with),
		newKernelLog(with),
	}
}
