package proc

import (
	"path"
	"slices"
	"strings"

	"rdma_exporter/internal/host/rooted"
)

const nodesDir = "dev/infiniband"

// nodeGroups returns the groups that own nodes of RDMA devices which others may not open, each once. A node needs both
// permissions: libibverbs opens it with O_RDWR.
func nodeGroups(t *rooted.Tree) (out []uint32) {
	names, err := t.List(nodesDir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "uverbs") {
			continue
		}
		mode, group, err := t.Mode(path.Join(nodesDir, name))
		if err == nil && mode&0o006 != 0o006 && !slices.Contains(out, *group) {
			out = append(out, *group)
		}
	}
	return out
}

// containsAll reports whether a list has all of another.
func containsAll(list, all []uint32) bool {
	return !slices.ContainsFunc(all, func(x uint32) bool { return !slices.Contains(list, x) })
}
