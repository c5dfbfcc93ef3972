package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/site"
)

// flagTables lists every flag: global flags, then those of each command. A flag of several commands is described where
// it comes first, and named with the others.
func flagTables() (string, error) {
	var d document
	m := cli.CommandLine()
	d.line("### Global flags\n")
	first := map[string]string{} // command by line
	d.flags("", m.Flags, first)
	for _, c := range m.FlattenedCommands() {
		if len(c.Flags) == 0 || c.Name == "help" {
			continue
		}
		d.line("### `%s`\n", c.FullCommand)
		d.flags(c.FullCommand, c.Flags, first)
	}
	return d.String(), nil
}

func (d *document) flags(command string, flags []*kingpin.FlagModel, first map[string]string) {
	rows := 0
	shared := map[string][]string{}
	for _, f := range cli.Visible(flags) {
		row := fmt.Sprintf("- %s: %s", code(flagUsage(f)), plain(f.HelpWithEnvar()))
		if of, twice := first[row]; twice {
			shared[of] = append(shared[of], code("--"+f.Name))
			continue
		}
		first[row] = command
		d.line("%s", row)
		rows++
	}
	if rows > 0 {
		d.line("")
	}
	for _, of := range slices.Sorted(maps.Keys(shared)) {
		d.line("Shared with `%s`: %s.\n", of, strings.Join(shared[of], ", "))
	}
}

// flagUsage returns a flag with its default or the placeholder of its value.
func flagUsage(f *kingpin.FlagModel) string {
	usage, _, _ := strings.Cut(cli.FlagUsage(f), "=")
	if value := cmp.Or(strings.Join(f.Default, ","), f.PlaceHolder); value != "" && !f.IsBoolFlag() {
		usage += "=" + value
	}
	if f.Short != 0 {
		usage = "-" + string(f.Short) + ", " + usage
	}
	return usage
}

// keyTable lists the keys of a section of the configuration file.
func keyTable(keys []site.Key) func() (string, error) {
	return func() (string, error) {
		var d document
		var rows [][]string
		for _, k := range keys {
			rows = append(rows, []string{code(k.Name), k.Values, k.Default, k.Meaning})
		}
		d.table([]string{"key", "value", "default", "meaning"}, rows)
		return d.String(), nil
	}
}
