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

` + "`rdma_exporter check --setup`" + ` compares the settings of a host with what RDMA training needs: each with what was found, what is wanted and why,
the command that sets it, and the source of the wanted value (vendor's guide, specification, kernel). The section Setup of the node's page and
` + "`setup` of `/api/v1/node`" + ` have the same. The exporter changes none of them.

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

Metrics: ` + "`rdma_setup_info{domain,setting,object,value}`" + ` for each setting of the host that differs,
` + "`rdma_job_setting_info{workload,setting,value}`" + ` for those of jobs, which alerts show as evidence. Hosts of one kind are compared by
` + "`rdma_setup_objects{setting,role,value}`" + ` ([RDMAFleetDrift](runbooks/RDMAFleetDrift.md), ` + "`rdma_exporter compare`" + `). Settings are read each hour and evaluated each minute; ` + "`check --setup`" + ` reads them when it runs.

Settings of an InfiniBand fabric: [RDMAFabricOversubscribed](runbooks/RDMAFabricOversubscribed.md).

## Settings

In commands ` + "`{device}`, `{port}`, `{netdev}`, `{address}` and `{wanted}`" + ` stand for those of the object. "Of the job" is its environment,
NCCL_CONF_FILE or ~/.nccl.conf, and /etc/nccl.conf; variables are set and unset there. The alert, if there is one, follows "otherwise".
(1): drain the host before, and configure the switch port alike; where they differ, packets are dropped or paused.
`)
	cell := strings.NewReplacer("|", `\|`,
		" in the environment of the job, NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf", " of the job",
		" # of the job, or in nccl.conf", "",
		"Before: drain the host, and configure the switch port alike: where they differ, packets are dropped or paused", "(1)")
	for _, d := range setup.Domains() {
		heading := false
		for _, c := range setup.Checks {
			if c.Domain != d {
				continue
			}
			if !heading {
				fmt.Fprintf(&b, "\n### %s\n\n| setting | read from | wanted | otherwise | command |\n|---|---|---|---|---|\n", d)
				heading = true
			}
			why := c.Why
			if c.Alert != "" {
				why += " " + alertLink(c.Alert)
			}
			command := "`" + c.Remedy + "`"
			if c.Before != "" {
				command += ". Before: " + c.Before
			}
			fmt.Fprintf(&b, "| `%s`: %s | %s | %s | %s | %s |\n", c.ID, c.Name, cell.Replace(c.Read),
				cell.Replace(c.Wanted), cell.Replace(why), cell.Replace(command))
		}
	}
	return []byte(b.String())
}

// alertLink links place, ALERT or ALERT/REASON, to the section of the reason in the runbook.
func alertLink(place string) string {
	name, reason, found := strings.Cut(place, "/")
	if found {
		reason = "#" + reason
	}
	return fmt.Sprintf("[%s](%s%s)", place, runbook(name), reason)
}
