package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/nccl"
	"rdma_exporter/internal/topo"
)

// Topo is the command topo, with its flags.
type Topo struct {
	json bool
	env  []string
	nccl string
}

// Flags adds the flags.
func (p *Topo) Flags(a *kingpin.CmdClause) {
	a.Flag("json", "Print JSON instead of a drawing.").BoolVar(&p.json)
	a.Flag("nccl-env",
		"NCCL setting to evaluate for, instead of /etc/nccl.conf, such as NCCL_NET_GDR_LEVEL=PHB. Repeatable.").
		PlaceHolder("NAME=VALUE").StringsVar(&p.env)
	a.Flag("nccl-version", "NCCL version to evaluate for, such as 2.27.3. Default: a current one.").
		PlaceHolder("VERSION").StringVar(&p.nccl)
}

var ncclVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)

// job holds the NCCL flags.
func (p *Topo) job() (gdr.Job, error) {
	j := gdr.Job{NCCL: p.nccl, Env: nccl.Env{}}
	if p.nccl != "" && !ncclVersion.MatchString(p.nccl) {
		return j, fmt.Errorf("--nccl-version=%s: must be a version such as 2.27.3", p.nccl)
	}
	for _, setting := range p.env {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || !strings.HasPrefix(name, "NCCL_") {
			return j, fmt.Errorf("--nccl-env=%s: must be NCCL_NAME=VALUE", setting)
		}
		j.Env[name] = value
	}
	return j, nil
}

// Run draws GPUs and NICs with the decisions of NCCL.
func (p *Topo) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	var err error
	if c.NCCL, err = p.job(); err != nil {
		return command.Usage(err)
	}
	seen, _, err := c.Observe(ctx, std.Log, "infiniband", "pcie", "gpu", "gdr", "setup")
	if err != nil {
		return command.Usage(err)
	}
	if seen.Node().GDR == nil && len(seen.Node().InfiniBand.Devices) > 0 {
		return command.Usage(errors.New("timed out reading the PCI tree: try --collect.timeout=30s"))
	}
	m := topo.New(seen.Host, seen.Node())
	return command.OK, command.Print(std, p.json, m, topo.Marks, func(w io.Writer) error { return m.Draw(w, std.Style) })
}
