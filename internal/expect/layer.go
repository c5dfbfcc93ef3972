package expect

// EarlierLayer returns the link layer that a link had when it was first ACTIVE, if it has another one now; else empty.
// Links without a board have none.
func (m *Memory) EarlierLayer(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.data.Links[id].LinkLayer; m.hasFlipped(id, before) {
		return before
	}
	return ""
}

// hasFlipped reports whether a link has another link layer than before. m.mu is held.
func (m *Memory) hasFlipped(id, before string) bool {
	now := m.layers[id]
	return before != "" && now != "" && now != before
}

// adoptLayers notes the link layers of this reading. It takes those of the links of a board as the ones to expect once
// all that were ever ACTIVE have another one, and one of them is ACTIVE: the host was converted, no port has flipped
// alone. m.mu is held.
func (m *Memory) adoptLayers(links []NamedLink) {
	m.layers = map[string]string{}
	flipped := map[string][]*NamedLink{} // by board
	kept, active := map[string]bool{}, map[string]bool{}
	for i := range links {
		l := &links[i]
		board, before := l.Kind.Board, m.data.Links[l.ID].LinkLayer
		if board != "" {
			m.layers[l.ID] = l.Kind.LinkLayer
		}
		if m.hasFlipped(l.ID, before) {
			flipped[board] = append(flipped[board], l)
			active[board] = active[board] || l.Active
		} else if before != "" {
			kept[board] = true
		}
	}
	for board, all := range flipped {
		if kept[board] || !active[board] {
			continue
		}
		for _, l := range all {
			r := m.data.Links[l.ID]
			r.LinkLayer = l.Kind.LinkLayer
			m.data.Links[l.ID] = r
			m.touch()
		}
	}
}
