package transceiver

// Place is where a module has data that identifies it.
type Place struct {
	Serial   Ref // serial number
	Checksum Ref // checksum that includes the serial number
	Vendor   Ref // vendor-specific: may contain the serial number or customer names
}

// Private returns where modules with an identifier have identifying data; ok is false for an unknown identifier.
func Private(identifier uint8) (p Place, ok bool) {
	switch layoutOf(identifier) {
	case SFF8472:
		return Place{lower(68).run(16), lower(95), lower(96).run(32)}, true
	case SFF8636:
		return Place{upper(0, 0, 196).run(16), upper(0, 0, 223), upper(0, 0, 224).run(32)}, true
	case CMIS:
		return Place{upper(0, 0, 166).run(16), upper(0, 0, 222), upper(0, 0, 223).run(33)}, true
	}
	return Place{}, false
}
