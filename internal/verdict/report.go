package verdict

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/alerting"
	"rdma_exporter/internal/check"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/rules/identity"
)

// Identities queries the identities of the objects of alerts. It runs when a report is requested, not in each round.
// Alerts on one device share the results.
func Identities(engine *alerting.Engine, alerts []alerting.Alert, at time.Time) (out []check.Identity, err error) {
	results := map[string][]map[string]string{}
	uptime := sync.OnceValues(func() (float64, bool) {
		up, err := engine.Query(context.Background(), "max(rdma_host_uptime_seconds)", at)
		if err != nil || len(up) != 1 {
			return 0, false
		}
		return up[0].Value, true
	})
	for _, a := range alerts {
		var known check.Identity
		for _, q := range identity.Questions(a.Labels) {
			result, ok := results[q.Query]
			if !ok {
				series, failed := engine.Query(context.Background(), q.Query, at)
				err = errors.Join(err, failed)
				for _, s := range series {
					if q.Times {
						s.Labels = withTime(s.Labels, s.Value, at, uptime)
					}
					result = append(result, s.Labels)
				}
				results[q.Query] = result
			}
			if len(result) > 0 {
				if known == nil {
					known = check.Identity{}
				}
				known[q.Name] = result
			}
		}
		out = append(out, known)
	}
	return out, err
}

// withTime adds to labels the time that a series has as its value: wall clock time and, if the uptime is known, seconds
// since boot as in dmesg.
func withTime(labels map[string]string, value float64, at time.Time, uptime func() (float64, bool)) map[string]string {
	out := maps.Clone(labels)
	when := time.UnixMilli(int64(value * 1000)).UTC()
	out["time"] = when.Format(time.RFC3339)
	if up, ok := uptime(); ok {
		out["since_boot_seconds"] = strconv.FormatFloat(up-at.Sub(when).Seconds(), 'f', 1, 64)
	}
	return out
}

// Seen returns the state of a round that is reported although it has no alert.
func Seen(p *rounds.Picture) (out check.Seen) {
	out.Maintenance = p.Maintenance
	if p.Node().GPUs != nil {
		out.GPUsReleased = p.Node().GPUs.Released
	}
	if log := p.Node().KernelLog; log != nil {
		out.FirmwareFirst = log.FirmwareFirst
	}
	out.Functions, out.Failed = countLeftOut(p), listFailedReads(p)
	n := p.Node().InfiniBand
	if n != nil {
		out.NoDevice = n.None
	}
	out.Objects = listObjects(p)
	out.Rates.Ports, out.Rates.Capable = n.UnconfirmedRates()
	out.Rates.SlowModes = n.SlowModes()
	if n != nil && n.Stack != nil && n.Stack.Expected == hostdata.ExpectedUnknown {
		out.Stack = &check.Stack{State: string(n.Stack.State)}
		for _, f := range n.Stack.Functions {
			out.Stack.Functions = append(out.Stack.Functions, f.PCIAddress)
		}
	}
	return out
}

// listObjects returns the objects of the host, classified by what was read of them.
func listObjects(p *rounds.Picture) []account.Object {
	var failures []account.Failure
	for _, f := range p.Failures {
		failures = append(failures, account.Failure{Device: f.Device, Text: f.String()})
	}
	return account.Objects(p.Node(), failures)
}

// listFailedReads returns the failed reads; nil if there are none.
func listFailedReads(p *rounds.Picture) *check.FailedReads {
	if len(p.Failures) == 0 {
		return nil
	}
	out := &check.FailedReads{Devices: []string{}, Others: []string{}, First: p.Failures[0].String()}
	for _, f := range slices.Backward(p.Failures) {
		if f.Device != "" {
			out.First, out.Devices = f.String(), append(out.Devices, f.Device)
		} else {
			out.Others = append(out.Others, f.Collector)
		}
	}
	for _, names := range []*[]string{&out.Devices, &out.Others} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return out
}

// countLeftOut returns the numbers of reduced functions, devices and series left out; nil if all are zero.
func countLeftOut(p *rounds.Picture) *check.Functions {
	f := check.Functions{Devices: p.LeftOut.Devices, Series: p.LeftOut.Series}
	if r := p.Node().Reduced; r.Reduces() {
		f.Reduced = len(r.Parts)
		for _, device := range r.LeftOut {
			if r.Of(device) {
				f.Reduced--
			}
		}
	}
	if f == (check.Functions{}) {
		return nil
	}
	return &f
}
