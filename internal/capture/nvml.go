package capture

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
)

// NVML data is one entry for the driver and one per GPU, by index, in lines "name: value".

const (
	nvmlSystemPath = "nvml/system"
	nvmlGPUDir     = "nvml/gpu"
	// Prefixes of related lines.
	nvmlErrorLine  = "nvlink_errors_"
	nvmlFabricLine = "fabric_"
	nvmlRowsLine   = "rows_"
)

func nvmlGPUPath(index int) string { return fmt.Sprintf("%s/%d", nvmlGPUDir, index) }

// nvmlLine is a value of an entry: *string, *uint64, *bool, or **uint64 and **float64 for optional ones.
type nvmlLine struct {
	name  string
	value any
}

func nvmlSystemLines(v *snapshot.NVML) []nvmlLine {
	return []nvmlLine{{"driver", &v.Driver}, {"cuda", &v.CUDA}}
}

func nvmlGPULines(g *snapshot.GPU) []nvmlLine {
	out := []nvmlLine{
		{"uuid", &g.UUID},
		{"pci_address", &g.PCIAddress},
		{"model", &g.Model},
		{"serial", &g.Serial},
		{"compute_capability", &g.Capability},
		{"pcie_generation", &g.PCIeGeneration},
		{"pcie_max_generation", &g.PCIeMaxGeneration},
		{"pcie_width", &g.PCIeWidth},
		{"pcie_max_width", &g.PCIeMaxWidth},
		{"nvlinks", &g.NVLinks},
		{"nvlinks_up", &g.NVLinksUp},
		{"c2c_links", &g.C2CLinks},
		{"processes", &g.Processes},
		{"last_xid", &g.LastXID},
		{"recovery_action", &g.RecoveryAction},
		{"temperature", &g.Temperature},
		{"power", &g.Power},
		{"utilization", &g.Utilization},
		{"memory_used", &g.MemoryUsed},
		{"memory_total", &g.MemoryTotal},
		{"bar1_used", &g.BAR1Used},
		{"bar1_total", &g.BAR1Total},
		{"throttle", &g.Throttle},
	}
	for _, c := range nvmlCounters(g) {
		out = append(out, nvmlLine{c.name, c.value})
	}
	return out
}

// nvmlCounters are the monotonic values.
func nvmlCounters(g *snapshot.GPU) []field {
	return []field{
		{"pcie_transmit_bytes", &g.PCIeTransmit, false},
		{"pcie_receive_bytes", &g.PCIeReceive, false},
		{"pcie_replays", &g.PCIeReplays, false},
		{"nvlink_transmit_bytes", &g.NVLinkTransmit, false},
		{"nvlink_receive_bytes", &g.NVLinkReceive, false},
		{"xid_events", &g.XIDs, false},
	}
}

func nvmlFabricLines(f *snapshot.GPUFabric) []nvmlLine {
	return []nvmlLine{
		{nvmlFabricLine + "state", &f.State},
		{nvmlFabricLine + "status", &f.Status},
		{nvmlFabricLine + "health", &f.Health},
		{nvmlFabricLine + "summary", &f.Summary},
		{nvmlFabricLine + "cluster", &f.Cluster},
		{nvmlFabricLine + "clique", &f.Clique},
	}
}

func nvmlRowsLines(r *snapshot.RemappedRows) []nvmlLine {
	return []nvmlLine{
		{nvmlRowsLine + "correctable", &r.Correctable},
		{nvmlRowsLine + "uncorrectable", &r.Uncorrectable},
		{nvmlRowsLine + "pending", &r.Pending},
		{nvmlRowsLine + "failed", &r.Failed},
	}
}

// text formats the value; false if it is absent.
func (l nvmlLine) text() (string, bool) {
	switch v := l.value.(type) {
	case *string:
		return *v, *v != ""
	case *uint64:
		return strconv.FormatUint(*v, 10), true
	case *bool:
		return strconv.FormatBool(*v), true
	case *[]int:
		return strings.Trim(fmt.Sprint(*v), "[]"), *v != nil
	case **uint64:
		if *v != nil {
			return strconv.FormatUint(**v, 10), true
		}
	case **float64:
		if *v != nil {
			return strconv.FormatFloat(**v, 'f', -1, 64), true
		}
	}
	return "", false
}

// parse sets the value.
func (l nvmlLine) parse(s string) (err error) {
	switch v := l.value.(type) {
	case *string:
		*v = s
	case *uint64:
		*v, err = strconv.ParseUint(s, 10, 64)
	case *bool:
		*v, err = strconv.ParseBool(s)
	case *[]int:
		*v = []int{}
		for word := range strings.FieldsSeq(s) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			*v = append(*v, pid)
		}
	case **uint64:
		*v = new(uint64)
		**v, err = strconv.ParseUint(s, 10, 64)
	case **float64:
		*v = new(float64)
		**v, err = strconv.ParseFloat(s, 64)
	}
	return err
}

func encodeNVML(of ...nvmlLine) []byte {
	var b bytes.Buffer
	for _, l := range of {
		if s, ok := l.text(); ok {
			fmt.Fprintf(&b, "%s: %s\n", l.name, s)
		}
	}
	return b.Bytes()
}

func encodeGPU(g snapshot.GPU) []byte {
	of := nvmlGPULines(&g)
	for i := range g.NVLinkErrors {
		of = append(of, nvmlLine{nvmlErrorLine + g.NVLinkErrors[i].Name, &g.NVLinkErrors[i].Value})
	}
	if g.Fabric != nil {
		of = append(of, nvmlFabricLines(g.Fabric)...)
	}
	if g.RemappedRows != nil {
		of = append(of, nvmlRowsLines(g.RemappedRows)...)
	}
	return encodeNVML(of...)
}

// decodeNVML decodes the lines in of. Others go to other.
func decodeNVML(path string, data []byte, of []nvmlLine, other func(name, value string) error) error {
	return lines(path, data, func(name, value string) error {
		for _, l := range of {
			if l.name == name {
				return l.parse(value)
			}
		}
		return other(name, value)
	})
}

func decodeGPU(path string, data []byte) (g snapshot.GPU, err error) {
	var fabric snapshot.GPUFabric
	var rows snapshot.RemappedRows
	of := slices.Concat(nvmlGPULines(&g), nvmlFabricLines(&fabric), nvmlRowsLines(&rows))
	err = decodeNVML(path, data, of, func(name, value string) error {
		kind, ok := strings.CutPrefix(name, nvmlErrorLine)
		if !ok {
			return nil
		}
		n, err := strconv.ParseUint(value, 10, 64)
		g.NVLinkErrors = append(g.NVLinkErrors, snapshot.Stat{Name: kind, Value: n})
		return err
	})
	if hasLine(data, nvmlFabricLine) {
		g.Fabric = &fabric
	}
	if hasLine(data, nvmlRowsLine) {
		g.RemappedRows = &rows
	}
	return g, err
}

func hasLine(data []byte, prefix string) bool {
	return bytes.HasPrefix(data, []byte(prefix)) || bytes.Contains(data, []byte("\n"+prefix))
}
