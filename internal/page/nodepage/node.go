package nodepage

import (
	"cmp"
	"slices"
	"time"

	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/exposition"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/page"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/topo"
	"rdma_exporter/internal/traits"
)

// Input is the data of a node at one time.
type Input struct {
	Exporter string // version of the program
	Machine  string // which machine is read: "this host", "a replay of …"
	Host     string // instance label, or the host name with --no-alerting
	Now      time.Time
	Read     time.Time // of the round; zero: none has ended
	Interval time.Duration
	Node     *snapshot.Node
	Families []exposition.Family
	Needs    map[string]string // permission required by each denied source
	Report   *check.Report     // nil: no rules are evaluated
	Alerts   []alerting.Alert
	History  *History // nil: nothing is kept
	// NoHistory is the error of reading the history, where one is kept.
	NoHistory   error
	Maintenance *maintenance.Notice // nil: none is announced
	Incidents   []Incident          // the newest first
}

// Incident is a kept capture of the moment when alerts that drain the host first fired.
type Incident struct {
	Time   time.Time `json:"time"`
	File   string    `json:"file"`   // in the state directory, for --replay
	Alerts []string  `json:"alerts"` // with the part of the host
}

// Node is what the page shows apart from the plots, and the answer of GET /api/v1/node: docs/api.md.
type Node struct {
	Version  int           `json:"version"`
	Exporter string        `json:"exporter"`
	Machine  string        `json:"machine"`
	Host     string        `json:"host"`
	Time     time.Time     `json:"time"`   // of the last round
	Report   *check.Report `json:"report"` // what check --json prints; null with --no-alerting
	// Maintenance is set while it is announced.
	Maintenance *maintenance.Notice `json:"maintenance,omitempty"`
	// GPUsReleased is set while the GPUs are released on request, so that the exporter reads none.
	GPUsReleased *accel.GPURelease `json:"gpus_released,omitempty"`

	// Incidents are the kept captures of incidents, the newest first.
	Incidents []Incident `json:"incidents,omitempty"`

	// Setup are the settings of the host, as in check --setup --json; absent if they were not read.
	Setup []hostdata.SetupRow `json:"setup,omitempty"`
	// Kind and traits are what the host is compared by, as in check --setup --json; absent as setup.
	Kind   *string        `json:"kind,omitempty"`
	Traits []traits.Trait `json:"traits,omitempty"`

	Waiting    []page.Waiting  `json:"waiting"`
	Ports      []Port          `json:"ports"`
	Missing    []MissingDevice `json:"missing_devices"`
	Denied     []Denied        `json:"not_permitted"`
	Collectors []Collector     `json:"collectors"`
	BackOff    bool            `json:"rtnl_back_off"` // requests that take the RTNL lock are suspended
	// OverBudget are the devices whose reads take too long, so that low-priority data is read less often; "host": all
	// devices together.
	OverBudget []string  `json:"over_budget_devices"`
	Alerting   *Alerting `json:"alerting"` // null with --no-alerting
}

// MissingDevice is an expected device that is missing.
type MissingDevice struct {
	Device     string `json:"device"`
	PCIAddress string `json:"pci_address,omitempty"`
	Reason     string `json:"reason"`
}

// Denied is a source that the exporter may not read.
type Denied struct {
	Source string `json:"source"`
	Needs  string `json:"needs"` // required permission
}

// New returns the data of the page of a node. Sections that were not read are left out.
func New(in Input) Node {
	n := Node{
		Version: page.Version, Exporter: in.Exporter, Machine: page.Shorten(in.Machine, page.MaxText),
		Host: exposition.ValidLabel(in.Host), Time: in.Read.UTC(), Report: in.Report,
		Maintenance: in.Maintenance, Incidents: shortenIncidents(in.Incidents),
		Waiting: page.ListWaiting(in.Alerts, in.Report), Ports: []Port{}, Missing: []MissingDevice{}, Denied: []Denied{},
		Collectors: []Collector{}, OverBudget: []string{},
	}
	if in.Node != nil {
		n.Ports = listPorts(in)
		n.Missing = listMissing(in.Node.InfiniBand)
		if in.Node.Setup != nil {
			of := traits.Of(in.Node)
			n.Kind, n.Traits = &of.Kind, of.Traits
			for _, r := range in.Node.Setup.Rows {
				n.Setup = append(n.Setup, check.ShownSetting(r))
			}
		}
		if in.Node.GPUs != nil {
			n.GPUsReleased = in.Node.GPUs.Released
		}
	}
	f := families(in.Families)
	f.each("rdma_scrape_permission_denied", func(labels []string, v float64) {
		if v == 1 {
			n.Denied = append(n.Denied, Denied{Source: labels[0], Needs: in.Needs[labels[0]]})
		}
	})
	f.each("rdma_scrape_over_budget", func(labels []string, _ float64) {
		n.OverBudget = append(n.OverBudget, cmp.Or(exposition.ValidLabel(labels[0]), "host"))
	})
	f.each("rdma_scrape_rtnl_back_off", func(_ []string, v float64) { n.BackOff = v == 1 })
	n.Collectors = f.listCollectors()
	if in.Report != nil {
		n.Alerting = f.readAlerting()
	}
	return n
}

// shortenIncidents returns incidents with shortened texts, since names of devices and of files are untrusted.
func shortenIncidents(known []Incident) (out []Incident) {
	for _, i := range known {
		i.File = page.Shorten(i.File, page.MaxText)
		alerts := make([]string, len(i.Alerts))
		for j, a := range i.Alerts {
			alerts[j] = page.Shorten(a, page.MaxText)
		}
		i.Alerts = alerts
		out = append(out, i)
	}
	return out
}

// Topology returns the machine for GET /api/v1/topology and topo --json.
func Topology(in Input) *topo.Machine {
	if in.Node == nil {
		return topo.New(in.Host, &snapshot.Node{})
	}
	return topo.New(in.Host, in.Node)
}

// listMissing returns the expected devices that are missing.
func listMissing(ib *snapshot.InfiniBand) []MissingDevice {
	out := []MissingDevice{}
	if ib == nil {
		return out
	}
	for _, m := range ib.Missing {
		out = append(out, MissingDevice{
			Device: exposition.ValidLabel(m.Name), PCIAddress: exposition.ValidLabel(m.PCIAddress),
			Reason: exposition.ValidLabel(m.Reason),
		})
	}
	return out
}

// families are the families of a round, sorted by name.
type families []exposition.Family

// each calls take for each sample of a family, with the labels in the order of its Desc.
func (f families) each(name string, take func(labels []string, value float64)) {
	i, ok := slices.BinarySearchFunc(f, name,
		func(f exposition.Family, name string) int { return cmp.Compare(f.Head.Desc.Name, name) })
	if !ok {
		return
	}
	for labels, v := range f[i].Samples() {
		take(labels, v)
	}
}

// sum returns the sum of the samples of a family; 0 if it is missing.
func (f families) sum(name string) (out float64) {
	f.each(name, func(_ []string, v float64) { out += v })
	return out
}
