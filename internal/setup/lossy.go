package setup

import (
	"slices"

	"rdma_exporter/internal/snapshot"
)

// LossyClass is a traffic class that leads to a priority without PFC on a netdev of a lossless port.
type LossyClass struct {
	Device   string
	Port     int
	Netdev   string
	Priority int
	Job      string // empty: the class is that of the port
	Setting  string // variable or file that sets it
	Class    int
}

// LossyClasses are those whose rows contradict the traffic: a class that the site accepts is none. Ports that are not ACTIVE have none.
func LossyClasses(n *snapshot.Node, rows []snapshot.SetupRow) (out []LossyClass) {
	contradicts := func(setting string, match func(*snapshot.SetupRow) bool) bool {
		return slices.ContainsFunc(rows, func(r snapshot.SetupRow) bool {
			return r.Setting == setting && r.State == snapshot.SetupDiffers && r.Alert == lossyAlert && match(&r)
		})
	}
	if n.Setup == nil || n.QoS == nil || n.InfiniBand == nil {
		return nil
	}
	m := &machine{Node: n, files: n.Setup.Files}
	for _, l := range m.lanes() {
		for _, c := range l.chains {
			if !l.lossless || !active(l.Port) || !c.known() || l.q.Trust != byDSCP || l.q.PFC == nil || hasPFC(l.q, c.priority) {
				continue
			}
			x := LossyClass{
				Device: l.Name, Port: l.Number, Netdev: l.q.Name, Priority: c.priority, Setting: "traffic_class", Class: c.class,
			}
			named := contradicts("default_traffic_class", func(r *snapshot.SetupRow) bool { return r.Device == x.Device && r.Port == x.Port })
			if c.job != nil {
				x.Job, x.Setting = c.job.name, c.job.variable
				named = contradicts("job_traffic_class", func(r *snapshot.SetupRow) bool { return r.Object == x.Job })
			}
			if named && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}
