package transceiver

// Plan returns what to read next from a module of which p is known. Static data is read once: Plan is called again
// until there is no more, since it depends on what was read before. Monitors are read each time. Reading clears none of
// these bytes.
//
// mlx5 ignores the bank (drivers/net/ethernet/mellanox/mlx5/core/port.c) and would return the first bank instead. The
// caller rejects requests for other banks there.
func Plan(p *Pages) (static, monitors []Ref) {
	first := lower(0).run(3) // the identifier, and whether there are pages
	if rest, ok := p.open(first); ok {
		return []Ref{rest}, nil
	}
	id, ok := p.byteAt(lower(0))
	if !ok {
		return nil, nil
	}
	static = []Ref{upper(0, 0, 128).run(96)}
	if s, known := standards[layoutOf(id)]; known {
		static, monitors = s.plan(p)
	}
	var missing []Ref
	for _, r := range static {
		if rest, ok := p.open(r); ok {
			missing = append(missing, rest)
		}
	}
	return missing, monitors
}

// planSFF8472 reads A2h if according to A0h it exists and is accessible without a command (A0h:92, bits 6 and 2).
func planSFF8472(p *Pages) (static, monitors []Ref) {
	static = []Ref{lower(3).run(93)}
	if sff8472HasDOM(p) {
		static = append(static, a2(0).run(96))      // thresholds and calibration
		monitors = append(monitors, a2(96).run(15)) // up to the status
	}
	return static, monitors
}

// planSFF8636 reads only the identity of passive copper, and of modules without pages.
func planSFF8636(p *Pages) (static, monitors []Ref) {
	static = []Ref{upper(0, 0, 128).run(96), lower(107).run(7)}
	tech, ok := p.byteAt(upper(0, 0, 147))
	if !ok || sff8636Media(tech) == PassiveCopper {
		return static, nil
	}
	if flat := p.bit(lower(2), sff8636Flat); flat != nil && !*flat {
		static = append(static, upper(0, 3, 128).run(72)) // thresholds
	}
	return static, []Ref{lower(2), lower(22).run(36), lower(86).run(8)}
}

// planCMIS reads only the identity of modules without pages.
func planCMIS(p *Pages) (static, monitors []Ref) {
	static = []Ref{lower(39).run(2), lower(85).run(33), upper(0, 0, 128).run(95)}
	if flat := p.bit(lower(2), cmisFlat); flat == nil || *flat {
		return static, nil
	}
	static = append(static, upper(0, 1, 128).run(128), upper(0, 2, 128).run(128))
	monitors = []Ref{lower(3), lower(14).run(28)} // state; temperature, voltage, control and fault cause
	for bank := range uint8(cmisBanks(p)) {
		monitors = append(monitors, upper(bank, 0x11, 128).run(4)) // states of the data paths
		if has, ok := p.byteAt(upper(0, 1, 160)); ok && has&cmisLaneMonitors != 0 {
			monitors = append(monitors, upper(bank, 0x11, 154).run(60)) // powers and bias, and the selected applications
		} else {
			monitors = append(monitors, upper(bank, 0x11, 206).run(8))
		}
	}
	return static, monitors
}
