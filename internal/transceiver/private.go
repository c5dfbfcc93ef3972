package transceiver

// Place is where a module has data that identifies it.
type Place struct {
	Serial   Ref // serial number
	Checksum Ref // checksum that includes the serial number
	Vendor   Ref // vendor-specific: may contain the serial number or customer names
}

// Private returns where modules with an identifier have identifying data; ok is false for an unknown identifier.
func Private(identifier uint8) (p Place, ok bool) {
	s, ok := standards[layoutOf(identifier)]
	return s.private, ok
}
