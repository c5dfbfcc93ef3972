package panels

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// File returns the file of the dashboard.
func (b Board) File() ([]byte, error) {
	d, err := b.build()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	text := out.Bytes()
	for title, id := range numbers(d.Panels) {
		text = bytes.ReplaceAll(text, []byte("viewPanel="+title+`"`), fmt.Appendf(nil, `viewPanel=%d"`, id))
	}
	return unfolded(text), nil
}

// numbers returns the numbers of panels by their titles.
func numbers(panels []dashboard.PanelOrRowPanel) map[string]uint32 {
	out := map[string]uint32{}
	for _, p := range panels {
		if p.Panel != nil {
			out[*p.Panel.Title] = *p.Panel.Id
		} else {
			for _, inside := range p.RowPanel.Panels {
				out[*inside.Title] = *inside.Id
			}
		}
	}
	return out
}

// unfolded has a line for each field of a dashboard and for each element of such a field, a panel for example. Fully
// indented, the files would be twice as large, and Helm keeps them in a Secret of at most 1 MiB.
func unfolded(compact []byte) []byte {
	const deepest = 2
	var out []byte
	depth, quoted := 0, false
	line := func() {
		if depth <= deepest {
			out = append(append(out, '\n'), bytes.Repeat([]byte(" "), depth)...)
		}
	}
	for i, c := range compact {
		switch {
		case quoted:
			quoted = c != '"' || escaped(compact[:i])
		case c == '"':
			quoted = true
		case c == '}' || c == ']':
			depth--
			if compact[i-1] != '{' && compact[i-1] != '[' && depth < deepest {
				line()
			}
		}
		out = append(out, c)
		switch {
		case quoted:
		case c == '{' || c == '[':
			depth++
			if next := compact[i+1]; next != '}' && next != ']' {
				line()
			}
		case c == ',':
			line()
		}
	}
	return out
}

// escaped reports whether the byte after b is escaped: an odd number of backslashes ends b.
func escaped(b []byte) bool { return (len(b)-len(bytes.TrimRight(b, `\`)))%2 == 1 }
