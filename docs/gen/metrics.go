package main

import (
	"slices"
	"strings"

	"rdma_exporter/collector"
	"rdma_exporter/collector/hwcounters"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/fabric"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/web"
)

const metricsHead = `# Metrics

<!-- Written by go run ./docs/gen from the Descs in collector/, internal/rounds, internal/web and internal/fabric. -->

Unavailable values are absent, never 0. Empty labels are left out. Names ending in ` + "`_total`" + ` are counters, the others are gauges unless noted; names
contain the unit. Counters have the hardware's values: they reset when a driver is reloaded or the counters are cleared, which ` + "`rate`" + ` and ` + "`increase`" + `
handle. Series only have identifying labels (` + "`device`, `port`" + `); join descriptions from the ` + "`*_info`" + ` metrics with ` + "`max by (…)`" + `.

A value belongs to what its labels identify (device, port, GPU, node), else to the host or to the exporter. (function): traffic of one PCI
function; functions on one link are counted separately, other traffic of the link is not included. (bond): all members of a RoCE LAG, the
function on a port without a bond.

All collectors are on by default. The source of a metric follows its meaning in italics; without one, it is the exporter itself. Sources beginning
with ` + "`ports/N`" + ` are below ` + "`/sys/class/infiniband/DEV`" + `. hw_counters: RDMA netlink STAT_GET, else ` + "`ports/N/hw_counters`" + `. Management datagrams are those
of the InfiniBand specification (IBA): PortInfo 14.2.5.6, SMInfo 14.2.5.13, PortCounters 16.1.3.5 with PortCountersExtended 16.1.4.11,
PortExtendedSpeedsCounters 16.1.4.12.

`

const driverHead = `## Driver counter names

Driver counters that are exported under a common name, with all names used in any kernel version. The mlx5 names have the same meaning in other drivers,
for example in Broadcom's out-of-tree bnxt_re. Other counters are exported as ` + "`rdma_port_hw_stat{stat}`" + ` or ` + "`rdma_device_hw_stat{stat}`" + `.
Traffic counters are taken from here only if ` + "`ports/N/counters`" + ` has none.

`

const fecHead = `## Errors before and after FEC

A bit error rate is errors divided by rate and time. Errors before FEC (corrected bits or symbols, raw errors of lanes) are normal on links of
50 Gb/s per lane and above; errors after FEC (PCS symbol errors, symbol errors, uncorrectable blocks) lose packets. A corrected symbol has 10 bits
and in most cases one of them in error. A block (codeword) of RS(544,514) has 5440 bits, of RS(528,514) 5280 bits.

| source | has | layout |
| --- | --- | --- |
| ` + "`ethtool -S`" + ` of mlx5, also of the IPoIB interface of an InfiniBand port | bits corrected, symbols not corrected, bit errors of lanes before FEC | port, 64 bits; lanes 0 to 3 |
| ` + "`ethtool -S`" + ` of bnxt_en | bits and blocks corrected, blocks and symbols not corrected | port |
| ethtool netlink FEC_GET | blocks corrected and not corrected: mlx5, bnxt_en, ice, hns3; bits corrected: mlx5, bnxt_en | port; by lane with Fire code (mlx5, hns3) |
| ethtool netlink FEC_GET, histogram (since Linux 6.18) | blocks by number of corrected symbols: mlx5, bnxt_en | port, 16 bins for RS(544,514); a bin of several numbers counts with its lowest |
| PortExtendedSpeedsCounters with RS-FEC | symbols corrected; blocks corrected and not corrected | symbols by lane and port, blocks by port; 32 bits, of headers 16 bits |
| PortExtendedSpeedsCounters with Fire code | blocks corrected and not corrected | by lane, 32 bits |
| PortCountersExtended | symbol errors (after FEC) | port, 64 bits |

FEC_GET is read each minute, the other sources of ` + "`ethtool`" + ` each 15s. It does not tell the code of RS-FEC: that follows from the rate of a lane. ionic
reports the FEC in use, no errors.

PortExtendedSpeedsCounters are read each minute with management datagrams: of the port's own agent where the umad devices can be opened, of the far
end with ` + "`--collector.neighbour.subnet`" + `, of switches in fabric mode. They are read only if the agent reports the capability (ClassPortInfo,
IsRSFECModeCountersSupported) and the port reports its FEC (PortInfoExtended, FECModeActive), because the layout depends on it. The driver of mlx5
answers for the port's own agent without this capability: errors of its own ports come from the IPoIB interface. Counters of 32 bits stop at their
end: at a bit error rate of 1e-7, those of a lane of NDR after five days. They are absent then, and
` + "`rdma_port_counter_saturated`" + ` or ` + "`rdma_fabric_port_counter_saturated`" + ` names them. Eye opening, margins and other registers of the PHY are read by the
vendor's tools only.

`

const partsHead = `## Functions beside physical ones

Virtual functions and subfunctions on the host of their physical function have identity, state and the counters that rules read
(` + "`--device.functions=rules`" + `). With ` + "`--device.functions=all`" + ` they also have these metrics, each as far as the driver exposes it.
A virtual function in a guest has all metrics. A capture contains what is read. Rules of ` + "`--alerting.rule-files`" + ` count at the start of the exporter. ` +
	"`check`" + ` and the page report the number of these functions.

`

// metricsPage lists all metrics. read are those that the rules read.
func metricsPage(read map[string]bool) []byte {
	var d document
	d.WriteString(metricsHead)
	declared := map[string]bool{}
	for _, c := range collector.All(collector.Options{}) {
		d.line("## Collector `%s`\n", c.Name)
		d.line("%s.\n", upperFirst(plain(c.Help)))
		d.metrics(c.Descs, declared)
	}
	d.WriteString(fecHead)
	d.WriteString(partsHead)
	d.line("%s\n", strings.Join(ofDevices(func(name string) bool { return !read[name] }), ", "))
	d.line("## Exporter\n")
	d.line("Also `process_*` and `go_*`, unless disabled by `--no-web.exporter-metrics`.\n")
	d.metrics(rounds.Descs, declared)

	d.line("## HTTP server\n")
	d.line("Also in fabric mode; not of a scrape with `collect[]`.\n")
	d.metrics(web.Descs, declared)

	d.line("## Fabric mode\n")
	d.line("Only of `rdma_exporter fabric`: [fabric.md](fabric.md). Ports are switch ports; with `--fabric.adapter-counters` counters and state of adapter ports")
	d.line("too. `rdma_fabric_link_info` has the names. Ports that never had a link are left out.\n")
	d.metrics(fabric.Descs(), declared)

	d.WriteString(driverHead)
	for _, n := range hwcounters.Names() {
		var drivers []string
		for _, x := range n.Drivers {
			drivers = append(drivers, plain(x.Driver)+" "+codes(x.Names))
		}
		d.line("- %s: %s", code(n.Metric), strings.Join(drivers, "; "))
	}
	return trimmed(d)
}

// ofDevices returns the chosen metrics of collectors that read virtual functions and subfunctions, sorted. The others
// read physical ports.
func ofDevices(chosen func(name string) bool) (out []string) {
	for _, c := range collector.All(collector.Options{}) {
		for _, x := range c.Descs {
			if slices.Contains([]string{"infiniband", "hwcounters", "health"}, c.Name) &&
				slices.Contains(x.Labels, "device") && chosen(x.Name) {
				out = append(out, code(x.Name))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// metrics lists the metrics that are not declared yet: collectors may share a Desc.
func (d *document) metrics(descs []*exposition.Desc, declared map[string]bool) {
	for _, x := range descs {
		if declared[x.Name] {
			continue
		}
		declared[x.Name] = true
		guardedSource := ""
		if x.Source != "" && x.Source != "the exporter" {
			guardedSource = " *" + plain(shortSource.Replace(x.Source)) + "*"
		}
		d.line("- %s: %s%s", signature(x), plain(x.Help), guardedSource)
	}
	d.line("")
}

// shortSource shortens the sources that most metrics have; the head of the page has them in full.
var shortSource = strings.NewReplacer(
	"RDMA netlink STAT_GET, ports/N/hw_counters", "hw_counters",
	"ethtool -S (ETHTOOL_GSTATS)", "ethtool -S",
	"PortCounters, IBA 16.1.3.5; PortCountersExtended, IBA 16.1.4.11", "PortCounters",
	"PortExtendedSpeedsCounters, IBA 16.1.4.12", "PortExtendedSpeedsCounters",
	"PortInfo, IBA 14.2.5.6", "PortInfo",
	"SMInfo, IBA 14.2.5.13", "SMInfo",
)

// signature is name{labels} of a metric, with its type and scope unless name and labels imply them.
func signature(x *exposition.Desc) string {
	text := x.Name
	if len(x.Labels) > 0 {
		text += "{" + strings.Join(x.Labels, ",") + "}"
	}
	var notes []string
	if !slices.Contains([]string{"gauge", "counter"}, x.Type.String()) {
		notes = append(notes, x.Type.String())
	}
	if x.Scope == exposition.ScopeFunction || x.Scope == exposition.ScopeBond {
		notes = append(notes, string(x.Scope))
	}
	if notes == nil {
		return code(text)
	}
	return code(text) + " (" + strings.Join(notes, ", ") + ")"
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// trimmed ends a page with one line feed.
func trimmed(d document) []byte { return append([]byte(strings.TrimRight(d.String(), "\n")), '\n') }
