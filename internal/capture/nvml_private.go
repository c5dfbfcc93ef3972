package capture

import (
	"fmt"
	"regexp"
	"slices"
)

var (
	nvmlGPUEntry = regexp.MustCompile(`^` + nvmlGPUDir + `/[0-9]+$`)
	uuidPattern  = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	// gpuUUIDPattern matches a UUID of a GPU or MIG instance in any file, for example /proc/driver/nvidia/gpus/ADDRESS/information.
	gpuUUIDPattern = regexp.MustCompile(`\b(?:GPU|MIG)-` + uuidPattern.String()[2:])
)

func isGPU(name string) bool { return nvmlGPUEntry.MatchString(name) }

// collectGPUs adds the UUIDs of GPUs and of their NVLink domains, and the serial numbers of boards.
func collectGPUs(a *Archive, uuids, serials map[string]bool) {
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			for _, u := range gpuUUIDPattern.FindAllString(string(e.Data), -1) {
				uuids[u[4:]] = true
			}
			if e.Kind != File || !isGPU(e.Path) {
				continue
			}
			g, err := decodeGPU(e.Path, e.Data)
			if err != nil {
				continue
			}
			if g.Serial != "" {
				serials[g.Serial] = true
			}
			if g.Fabric != nil && g.Fabric.Cluster != "" {
				uuids[g.Fabric.Cluster] = true
			}
		}
	}
}

// numberUUIDs numbers UUIDs in order.
func numberUUIDs(uuids map[string]bool) map[string]string {
	var list []string
	for u := range uuids {
		list = append(list, u)
	}
	slices.Sort(list)
	out := map[string]string{}
	for i, u := range list {
		out[u] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i+1)
	}
	return out
}

// gpu replaces the UUIDs and the serial number in an entry of a GPU. An entry that cannot be decoded is left out.
func (p *pseudonyms) gpu(name string, data []byte) []byte {
	g, err := decodeGPU(name, data)
	if err != nil {
		return nil
	}
	g.UUID = p.gpuUUIDs(g.UUID)
	g.Serial = p.serials[g.Serial]
	if g.Fabric != nil {
		g.Fabric.Cluster = p.uuids[g.Fabric.Cluster]
	}
	return encodeGPU(g)
}

// gpuUUIDs replaces the UUIDs of GPUs in a text.
func (p *pseudonyms) gpuUUIDs(s string) string {
	return gpuUUIDPattern.ReplaceAllStringFunc(s, func(u string) string { return u[:4] + or(p.uuids[u[4:]], u[4:]) })
}
