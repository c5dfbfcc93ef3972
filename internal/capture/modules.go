package capture

import "fmt"

// moduleSerial is the serial number of a transceiver; empty if it is not known.
func moduleSerial(e *Entry) string {
	page, err := decodeEEPROM(e.Path, e.Data)
	if err != nil {
		return ""
	}
	if place, ok := page.private(); ok {
		return page.serial(place.Serial)
	}
	return ""
}

// publicModule leaves out vendor-specific data and pages of unknown layout, and everything but the identifier if that
// is unknown.
func (p *pseudonyms) publicModule(name string, data []byte) []byte {
	e, err := decodeEEPROM(name, data)
	if err != nil {
		return nil
	}
	if !isIdentity(name) {
		return data
	}
	place, ok := e.private()
	if !ok {
		e.forget(3, pageSize)
		return e.encode()
	}
	at, end := int(place.Serial.Offset), int(place.Serial.Offset)+int(place.Serial.Length)
	if len(e.get(at, end-at)) < end-at {
		e.forget(at, end)
	}
	e.forget(int(place.Vendor.Offset), int(place.Vendor.Offset)+int(place.Vendor.Length))
	return e.encode()
}

// module replaces the serial number of a module and keeps its checksum as valid or invalid as it was.
func (p *pseudonyms) module(name string, data []byte) []byte {
	e, err := decodeEEPROM(name, data)
	if err != nil || !isIdentity(name) {
		return data
	}
	place, ok := e.private()
	if !ok {
		return data
	}
	if text := e.serial(place.Serial); text != "" {
		e.replace(int(place.Serial.Offset), int(place.Checksum.Offset),
			fmt.Sprintf("%-*s", int(place.Serial.Length), p.serials[text]))
	}
	return e.encode()
}
