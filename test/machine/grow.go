package machine

import (
	"fmt"
	"path/filepath"
	"strings"

	"rdma_exporter/internal/capture"
)

// Model is a device of a recorded machine as a template: everything below its root port.
type Model struct {
	File   string   // the capture
	Root   string   // part of its paths and link targets only: "pci0000:15/"
	Except string   // excluded function below the same root port
	Names  []string // names specific to each device, with a verb for its number: "mlx5_0=mlx5_%d"
}

// Grow writes a machine with n such devices and no others below dir. Each has a separate PCI domain.
func (m Model) Grow(n int, dir string) error {
	a, err := Load(m.File)
	if err != nil {
		return err
	}
	for _, e := range a.Rounds[0].Entries {
		where := e.Path + " " + filepath.Join(filepath.Dir(e.Path), e.Target) + "/"
		switch {
		case m.Except != "" && strings.Contains(where, m.Except):
		case strings.Contains(where, m.Root):
			for i := range n {
				path, data := m.names(i, "0000:=%04x:"), m.names(i)
				x := capture.Entry{
					Path: path.Replace(e.Path), Kind: e.Kind, Data: []byte(data.Replace(string(e.Data))),
					Target: path.Replace(e.Target),
				}
				if err := write(x, filepath.Join(dir, x.Path)); err != nil {
					return err
				}
			}
		case strings.Contains(where, "/pci0000:"), strings.HasPrefix(e.Path, "dev/infiniband/"): // of another device
		default:
			if err := write(e, filepath.Join(dir, e.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// names replaces the names of the model by those of device i.
func (m Model) names(i int, more ...string) *strings.Replacer {
	var pairs []string
	for _, n := range append(more, m.Names...) {
		from, to, _ := strings.Cut(n, "=")
		pairs = append(pairs, from, fmt.Sprintf(to, i))
	}
	return strings.NewReplacer(pairs...)
}
