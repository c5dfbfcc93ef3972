package metric

import "rdma_exporter/internal/host/source"

// Optics returns a Desc of the transceiver in the cage of a port; labels are added to device, port and netdev.
func Optics(name, help, origin string, labels ...string) *Desc {
	d := Asks(source.ModuleEEPROM, Port(name, help, origin, append([]string{"netdev"}, labels...)...))
	d.Never = InfinibandPorts
	return Of(EthernetPorts, d)
}

// BesideAge is for metrics beside the age of the readings of a transceiver.
func BesideAge(d *Desc) *Desc {
	return Beside("rdma_transceiver_age_seconds", OfReadings(d))
}

// OfReadings is for metrics of transceivers with readings.
func OfReadings(d *Desc) *Desc { return Of("rdma_transceiver_age_seconds", d) }
