package transceiver

// Place is where a module has what is of this one module.
type Place struct {
	Serial   Ref // its serial number
	Checksum Ref // of the serial number among others
	Vendor   Ref // what the vendor writes as it likes: the serial number once more, names of customers
}

// Private says where a module of an identifier has what is of this one module; ok is false where the identifier does not tell.
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
