package main

import (
	"strings"

	"rdma_exporter/collector"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
)

const metricsHead = `# Metrics

<!-- Written by go run ./docs/gen from the Descs in collector/, internal/rounds and internal/fabric. -->

A value that cannot be had is absent, never 0. A label that would be empty is left out. Counters are served as the hardware
has them, so they go back to 0 when a driver is reloaded or somebody clears them; ` + "`rate`" + ` and ` + "`increase`" + ` see to that.
Series carry identity only (` + "`device`, `port`" + `); what describes is in the ` + "`*_info`" + ` metrics, to be joined with ` + "`max by (…)`" + `.

Paths in the column *source* that begin with ` + "`ports/N`" + ` are below ` + "`/sys/class/infiniband/DEV`" + `.

| scope | the value belongs to |
| --- | --- |
| exporter | this process |
| host | the node |
| device | an RDMA device |
| port | a port of an RDMA device |
| function | the traffic of one PCI function: several functions on one wire count apart, and other traffic of the wire is not in it |
| fabric | the InfiniBand subnet, or a node or port in it, as fabric mode sees it |
| bond | all members of a RoCE LAG together; on a port without a bond, the function |

`

const driverHead = `## Counters of the drivers under common names

What each driver calls the counters that have a common name here; all names that a driver had in some kernel are listed. Those of mlx5 mean
the same of any driver, such as the bnxt_re that Broadcom offers for download. A
counter with another name is passed through as ` + "`rdma_port_hw_stat{stat}`" + ` or ` + "`rdma_device_hw_stat{stat}`" + `.
Traffic is taken from these only where ` + "`ports/N/counters`" + ` has none.

`

func metricsPage() []byte {
	var d document
	d.WriteString(metricsHead)
	declared := map[string]bool{}
	for _, c := range collector.All(collector.Options{}) {
		d.line("## Collector `%s`\n", c.Name)
		on := "On by default."
		if !c.Default {
			on = "Off by default: `--collector." + c.Name + "`."
		}
		d.line("%s. %s\n", upperFirst(plain(c.Help)), on)
		d.metrics(c.Descs, declared)
	}
	d.line("## The exporter itself\n")
	d.line("Beside these, `process_*` and `go_*` unless `--no-web.exporter-metrics` is given.\n")
	d.metrics(rounds.Descs, declared)

	d.line("## Fabric mode\n")
	d.line("Of `rdma_exporter fabric` alone: [fabric.md](fabric.md). A port is one of a switch, with `--fabric.adapter-counters` for its counters and its state")
	d.line("also one of an adapter; `rdma_fabric_link_info` has the names. Ports that never had a link are left out.\n")
	d.metrics(fabric.Descs(), declared)

	d.WriteString(driverHead)
	var rows [][]string
	for _, n := range collector.Names() {
		var cells []string
		for _, x := range n.Drivers {
			cells = append(cells, plain(x.Driver)+" "+codes(x.Names))
		}
		rows = append(rows, []string{code(n.Metric), strings.Join(cells, "<br>")})
	}
	d.table([]string{"metric", "counters by driver"}, rows)
	return trimmed(d)
}

// metrics lists the metrics that are not declared yet: collectors may share a Desc.
func (d *document) metrics(descs []*exposition.Desc, declared map[string]bool) {
	var rows [][]string
	for _, x := range descs {
		if declared[x.Name] {
			continue
		}
		declared[x.Name] = true
		rows = append(rows, []string{code(x.Name), x.Type.String(), plain(x.Unit), codes(x.Labels), plain(string(x.Scope)), plain(x.Help), plain(x.Source)})
	}
	d.table([]string{"metric", "type", "unit", "labels", "scope", "meaning", "source"}, rows)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// trimmed ends a page with one line feed.
func trimmed(d document) []byte { return append([]byte(strings.TrimRight(d.String(), "\n")), '\n') }
