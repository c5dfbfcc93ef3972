package capture

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kfdPattern matches the unique ID of an AMD GPU and the ID of its XGMI hive in the topology of amdkfd. Zero is none.
var kfdPattern = regexp.MustCompile(`(?m)^(unique_id|hive_id) ([1-9][0-9]*)$`)

func isKFD(path string) bool { return strings.Contains(path, "kfd/topology/nodes/") }

// collectKFD numbers the IDs in order of their digits.
func collectKFD(a *Archive) map[string]string {
	var ids []string
	for _, r := range a.Rounds {
		for _, e := range r.Entries {
			if e.Kind != File || !isKFD(e.Path) {
				continue
			}
			for _, m := range kfdPattern.FindAllStringSubmatch(string(e.Data), -1) {
				ids = append(ids, m[2])
			}
		}
	}
	slices.Sort(ids)
	out := map[string]string{}
	for i, id := range slices.Compact(ids) {
		out[id] = fmt.Sprint(i + 1)
	}
	return out
}

// kfd replaces the IDs in the properties of a node.
func (p *pseudonyms) kfd(text string) string {
	return kfdPattern.ReplaceAllStringFunc(text, func(line string) string {
		name, id, _ := strings.Cut(line, " ")
		return name + " " + p.kfdIDs[id]
	})
}
