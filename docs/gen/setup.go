package main

import (
	"fmt"
	"strings"

	"rdma_exporter/internal/setup"
)

// setupPage lists the settings that check --setup compares.
func setupPage() []byte {
	var b strings.Builder
	b.WriteString(`# Setup

` + "`rdma_exporter check --setup`" + ` compares the settings of a host with what RDMA training needs: each with what was found, what is wanted and why, the
command that sets it, and the source of the wanted value. The section Setup of the node's page and ` + "`setup` of `/api/v1/node`" + ` have the same.
The exporter changes none of them.

What is wanted comes from the first of:

1. ` + "`setup`" + ` in the [site configuration](configuration.md#setup);
2. the host itself: its traffic, jobs or sibling devices;
3. a vendor's guide: a recommendation.

| state | meaning |
|---|---|
| ` + "`ok`" + ` | as wanted |
| ` + "`differs`" + ` | warning: the setting contradicts the traffic or a job of the host, and the named alert fires once its conditions are met; info: it differs from a recommendation, from siblings or from the site configuration |
| ` + "`unknown`" + ` | it could not be read; the reason is given |

Settings that do not apply to the host are left out. Exit code of ` + "`check --setup`" + `: 0 if no setting contradicts the traffic, 1 if one does, 3 if there is no
RDMA device, or with ` + "`--strict`" + ` if a setting is unknown. ` + "`--verbose`" + ` also lists the settings that are as wanted, ` + "`--json`" + ` prints all.

Metrics: ` + "`rdma_setup_info{domain,setting,object,value}`" + ` for each setting of the host that differs of its own, ` + "`rdma_job_setting_info{workload,setting,value}`" + `
for those of jobs, which alerts have as evidence, ` + "`rdma_setup_hash_info{domain,hash}`" + ` for comparing hosts. Hosts of
one kind that are set up alike have one hash:

` + "```promql" + `
count by (domain, hash) (rdma_setup_hash_info)
` + "```" + `

Settings are read each hour and evaluated each minute; ` + "`check --setup`" + ` reads them when it runs.

Of an InfiniBand fabric, ` + "`rdma_exporter fabric`" + ` evaluates oversubscription of leaf switches (against the uplinks of [the configuration](configuration.md#switches), else the links that it remembers) and uneven load of their
uplinks: [RDMAFabricOversubscribed](runbooks/RDMAFabricOversubscribed.md), and the fabric page.

## Settings

In commands ` + "`{device}`, `{port}`, `{netdev}`, `{address}` and `{wanted}`" + ` stand for those of the object.
`)
	for _, d := range setup.Domains() {
		heading := false
		for _, c := range setup.Checks {
			if c.Domain != d {
				continue
			}
			if !heading {
				fmt.Fprintf(&b, "\n### %s\n\n| setting | read from | wanted | otherwise | command | source | alert |\n|---|---|---|---|---|---|---|\n", d)
				heading = true
			}
			alert := "–"
			if c.Alert != "" {
				name, fault, _ := strings.Cut(c.Alert, "/")
				alert = fmt.Sprintf("[%s](runbooks/%s.md#%s)", c.Alert, name, fault)
			}
			command := "`" + c.Remedy + "`"
			if c.Before != "" {
				command += ". Before: " + c.Before
			}
			cell := strings.NewReplacer("|", `\|`)
			fmt.Fprintf(&b, "| `%s`: %s | %s | %s | %s | %s | %s | %s |\n", c.ID, c.Name, cell.Replace(c.Read),
				cell.Replace(c.Wanted), cell.Replace(c.Why), cell.Replace(command), cell.Replace(c.Source), alert)
		}
	}
	return []byte(b.String())
}
