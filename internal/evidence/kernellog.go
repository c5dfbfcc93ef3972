package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// logged are the symptoms of hardware, on which the kernel log has evidence.
var logged = []string{
	"device_missing", "device_failed", "device_hot", "pcie_errors", "pcie_degraded", "port_down", "link_flapping",
	"link_degraded", "transceiver_hot", "gpu_xid",
}

// shownMessages limits the messages of the kernel log in the evidence of an alert.
const shownMessages = 4

// messages are the last messages of the last hour, and those whose end the log has not reported.
const messages = `rdma_kernel_log_last_event_timestamp_seconds{$host} > time() - 60 * 60
	or rdma_kernel_log_last_event_timestamp_seconds{$host}
		and on (pci_address, driver, kind) rdma_kernel_log_unresolved{$host}`

// kernelLines returns what the kernel log reports on the object of a fault, the newest first.
func kernelLines(f *fault.Fault) (out fault.Lines) {
	if !slices.Contains(logged, f.Labels["symptom"]) {
		return nil
	}
	addresses := append(f.LabelsOf(addressesOf(f), "pci_address"), f.Labels["pci_bus_id"], f.Labels["gpu"])
	rows := slices.DeleteFunc(f.Rows(messages, "kind", "detail"), func(r fault.Sample) bool {
		device, address := r.Labels["device"], r.Labels["pci_address"]
		return (device == "" || device != f.Labels["device"]) &&
			(address == "" || address != f.Labels["device"] && !slices.Contains(addresses, address))
	})
	slices.SortStableFunc(rows, func(a, b fault.Sample) int { return cmp.Compare(b.Value, a.Value) })
	for _, r := range rows[:min(len(rows), shownMessages)] {
		at := time.Unix(int64(r.Value), 0).UTC().Format("2 Jan 15:04:05 MST")
		what := words.Join(", ", words.Spaced(r.Labels["kind"]), r.Labels["detail"])
		out.Add("Kernel log", at+" "+words.Join(" ", r.Labels["driver"], r.Labels["pci_address"])+": "+what+".")
	}
	return out
}

// addressesOf is an expression for the PCI functions of the object of a fault, and the ports above it.
func addressesOf(f *fault.Fault) string {
	link, of := "rdma_device_pcie_link_info", "$device"
	if f.Labels["gpu"] != "" {
		link, of = "rdma_gpu_pcie_link_info", "$gpu"
	}
	return fmt.Sprintf(`max by (pci_address) (%s{%s} or label_replace(%s{%s}, "pci_address", "$1", "upstream", "(.+)")
		or label_replace(rdma_gpu_info{$gpu,UUID!=""}, "pci_address", "$1", "pci_bus_id", "(.+)")
		or rdma_device_missing_info{$device,device!=""})`, link, of, link, of)
}
