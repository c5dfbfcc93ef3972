package anonymise

import (
	"fmt"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
)

// moduleSerial returns the serial number of a transceiver; empty if it is not known.
func moduleSerial(e *capture.Entry) string {
	page, err := answer.DecodeEEPROM(e.Path, e.Data)
	if err != nil {
		return ""
	}
	if place, ok := page.Private(); ok {
		return page.Serial(place.Serial)
	}
	return ""
}

// publicModule leaves out vendor-specific data and pages of unknown layout, and everything but the identifier if that
// is unknown.
func (p *pseudonyms) publicModule(name string, data []byte) []byte {
	e, err := answer.DecodeEEPROM(name, data)
	if err != nil {
		return nil
	}
	if !answer.IsIdentity(name) {
		return data
	}
	place, ok := e.Private()
	if !ok {
		e.Forget(3, answer.PageSize)
		return e.Encode()
	}
	at, end := int(place.Serial.Offset), int(place.Serial.Offset)+int(place.Serial.Length)
	if len(e.Get(at, end-at)) < end-at {
		e.Forget(at, end)
	}
	e.Forget(int(place.Vendor.Offset), int(place.Vendor.Offset)+int(place.Vendor.Length))
	return e.Encode()
}

// module replaces the serial number of a module and keeps its checksum as valid or invalid as it was.
func (p *pseudonyms) module(name string, data []byte) []byte {
	e, err := answer.DecodeEEPROM(name, data)
	if err != nil || !answer.IsIdentity(name) {
		return data
	}
	place, ok := e.Private()
	if !ok {
		return data
	}
	if text := e.Serial(place.Serial); text != "" {
		e.Replace(int(place.Serial.Offset), int(place.Checksum.Offset),
			fmt.Sprintf("%-*s", int(place.Serial.Length), p.serials[text]))
	}
	return e.Encode()
}
