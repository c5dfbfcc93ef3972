package pcie

import (
	"fmt"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
)

func TestPCIePath(t *testing.T) {
	const nic = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"
	for _, c := range []struct {
		name, extra string
		speed       float64 // of the device
		width       uint64
		correctable string
		issues      int
	}{
		{"whole", "-- " + nic + "/aer_dev_correctable --\nRxErr 3\nTOTAL_ERR_COR 3\n", 32e9, 16, "3", 0},
		{"no AER", "", 32e9, 16, "none", 0},
		{"AER in another form", "-- " + nic + "/aer_dev_correctable --\nRxErr 3\n", 32e9, 16, "none", 1},
		{"off the bus", "-- " + nic + "/current_link_speed !EINVAL --\n-- " + nic + "/current_link_width !EINVAL --\n", 0, 0, "none", 2},
		{"no link", "-- " + nic + "/current_link_speed --\nUnknown\n-- " + nic + "/current_link_width --\n0\n", 0, 0, "none", 0},
		{"a width that is text", "-- " + nic + "/current_link_width --\nx16\n", 32e9, 0, "none", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReaderOf(t, collectortest.PCIeTree(c.extra))
			got, ok := readPCIePath(r, collectortest.DeviceOf(t, r, shared.NewRoster(shared.Options{}).Of))
			if !ok || len(got.Hops) != 4 {
				t.Fatalf("%+v %v", got, ok)
			}
			h := got.Hops[3]
			correctable := "none"
			if h.AER.Correctable != nil {
				correctable = fmt.Sprint(*h.AER.Correctable)
			}
			if h.Speed != c.speed || h.Width != c.width || correctable != c.correctable || len(r.Issues) != c.issues {
				t.Errorf("%+v, correctable %s, issues %v", h, correctable, r.Issues)
			}
		})
	}
	for name, tree := range map[string]string{
		"a virtual function": collectortest.PCIeTree("-- " + nic + "/physfn -> ../0000:18:00.1 --\n"),
		"a software device":  "-- sys/class/infiniband/mlx5_0/parent --\neth0\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := collectortest.ReaderOf(t, tree)
			if got, ok := readPCIePath(r, collectortest.DeviceOf(t, r, shared.NewRoster(shared.Options{}).Of)); ok {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestPCIeFatal: a fatal error of an endpoint is counted at its root port only.
func TestPCIeFatal(t *testing.T) {
	const root = "sys/devices/pci0000:15/0000:15:01.0/"
	own, reported := "-- "+root+"aer_dev_fatal --\nDLP 2\nTOTAL_ERR_FATAL 2\n",
		"-- "+root+"aer_rootport_total_err_fatal --\n"
	for _, c := range []struct {
		name, extra, fatal string
		issues             int
	}{
		{"no AER", "", "none", 0},
		{"an old kernel", own, "2", 0},
		{"one of its own and one from below", own + reported + "3\n", "3", 0},
		{"none yet", reported + "0\n", "0", 0},
		{"text", own + reported + "many\n", "2", 1},
		{"below it only", "-- " + root + "0000:18:00.0/aer_rootport_total_err_fatal --\n7\n", "none", 0}, // in no kernel
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReaderOf(t, collectortest.PCIeChain(c.extra, "0000:15:01.0", "0000:18:00.0"))
			got, _ := readPCIePath(r, collectortest.DeviceOf(t, r, shared.NewRoster(shared.Options{}).Of))
			fatal := "none"
			if n := got.Hops[0].AER.Fatal; n != nil {
				fatal = fmt.Sprint(*n)
			}
			if fatal != c.fatal || len(r.Issues) != c.issues {
				t.Errorf("%s, issues %v", fatal, r.Issues)
			}
		})
	}
	r := collectortest.ReaderOf(t, collectortest.PCIeTree(reported+"3\n"))
	got, _ := readPCIePath(r, collectortest.DeviceOf(t, r, shared.NewRoster(shared.Options{}).Of))
	if n := got.Hops[0].AER.Fatal; n != nil {
		t.Errorf("%d of anything below a switch", *n)
	}
}
