package collector

import "rdma_exporter/internal/host"

// opticsDesc is a Desc of the transceiver in the cage of a port; labels are those beside device, port and netdev.
func opticsDesc(name, help, source string, labels ...string) *Desc {
	d := asks(host.SourceModuleEEPROM, portDesc(name, help, source, append([]string{"netdev"}, labels...)...))
	d.Never = infinibandPorts
	return of(ethernetPorts, d)
}

func besideAge(d *Desc) *Desc {
	return beside("rdma_transceiver_age_seconds", ofReadings(d))
}

// ofReadings is for metrics of transceivers with readings.
func ofReadings(d *Desc) *Desc { return of("rdma_transceiver_age_seconds", d) }
