package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/words"
)

// Value returns *p, or the zero value if p is nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// RateText formats a rate with its lanes: "400 Gb/s 4X"; empty if there is no rate.
func RateText(bits float64, lanes uint64) string {
	if bits == 0 {
		return ""
	}
	s := strconv.FormatFloat(bits/1e9, 'g', 4, 64) + " Gb/s"
	if lanes != 0 {
		s += fmt.Sprintf(" %dX", lanes)
	}
	return s
}

// Table is a text table with a header row.
type Table struct {
	Rows [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table. Empty cells are "-".
func (t *Table) Print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range t.Rows {
		for i := range r {
			r[i] = cmp.Or(r[i], "-")
		}
		if _, err := fmt.Fprintln(tw, strings.Join(r, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// Print writes v as JSON, or as text. The text has names from hardware and from other users: it is made plain, then its
// marks are painted.
func Print(std Streams, asJSON bool, v any, marks terminal.Marks, write func(io.Writer) error) error {
	if asJSON {
		return PrintJSON(std.Out, v)
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	_, err := io.WriteString(std.Out, std.Style.PaintLines(words.Plain(text.String()), marks))
	return err
}

// PrintJSON writes v, indented.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
