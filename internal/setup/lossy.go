package setup

import (
	"slices"

	"rdma_exporter/internal/snapshot"
)

// lossy is a chain that certainly leads to a priority without PFC on a lossless port that is ACTIVE; ok is false if it
// does not.
func (l *lane) lossy(c *chain) (x snapshot.LossyClass, ok bool) {
	if !l.lossless || !active(l.Port) || !c.known() || l.q.Trust != byDSCP || l.q.PFC == nil || hasPFC(l.q, c.priority) {
		return x, false
	}
	x = snapshot.LossyClass{
		Device: l.Name, Port: l.Number, Netdev: l.q.Name, Priority: c.priority, Setting: "traffic_class", Class: c.class,
	}
	if c.job != nil {
		x.Job, x.Setting = c.job.name, c.job.variable
	}
	return x, true
}

// LossyClasses are those of the rows, each once: a class that the site accepts is none.
func LossyClasses(rows []snapshot.SetupRow) (out []snapshot.LossyClass) {
	for i := range rows {
		for _, x := range rows[i].Lossy {
			if !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}
