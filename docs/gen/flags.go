package main

import (
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/cli"
	"rdma_exporter/internal/site"
)

// flagTables lists every flag: global flags, then those of each command.
func flagTables() (string, error) {
	var d document
	m := cli.CommandLine()
	d.line("### Global flags\n")
	d.flags(m.Flags)
	for _, c := range m.FlattenedCommands() {
		if len(c.Flags) == 0 || c.Name == "help" {
			continue
		}
		d.line("### `%s`\n", c.FullCommand)
		d.flags(c.Flags)
	}
	return d.String(), nil
}

func (d *document) flags(flags []*kingpin.FlagModel) {
	var rows [][]string
	for _, f := range cli.Visible(flags) {
		usage, _, _ := strings.Cut(cli.FlagUsage(f), "=")
		if !f.IsBoolFlag() && len(f.Default) == 0 {
			usage += "=" + f.PlaceHolder
		}
		if f.Short != 0 {
			usage = "-" + string(f.Short) + ", " + usage
		}
		standard := strings.Join(f.Default, ", ")
		if f.IsBoolFlag() {
			standard = map[bool]string{true: "on", false: "off"}[standard == "true"]
		} else {
			standard = code(standard)
		}
		rows = append(rows, []string{code(usage), standard, plain(f.HelpWithEnvar())})
	}
	d.table([]string{"flag", "default", "meaning"}, rows)
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
