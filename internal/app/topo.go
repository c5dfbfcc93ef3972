package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/gdr"
	"rdma_exporter/internal/topo"
)

type topoConfig struct {
	json bool
	env  []string
	nccl string
}

func (p *topoConfig) flags(a *kingpin.CmdClause) {
	a.Flag("json", "JSON instead of a drawing.").BoolVar(&p.json)
	a.Flag("nccl-env", "A setting of NCCL to judge for, instead of those of /etc/nccl.conf: NCCL_NET_GDR_LEVEL=PHB. Can be given again.").PlaceHolder("NAME=VALUE").StringsVar(&p.env)
	a.Flag("nccl-version", "The version of NCCL to judge for, such as 2.27.3; a current one if it is not given.").PlaceHolder("VERSION").StringVar(&p.nccl)
}

var ncclVersion = regexp.MustCompile(`^\d+\.\d+(\.\d+)?$`)

// job is what the flags say of NCCL.
func (p *topoConfig) job() (gdr.Job, error) {
	j := gdr.Job{NCCL: p.nccl, Env: gdr.Env{}}
	if p.nccl != "" && !ncclVersion.MatchString(p.nccl) {
		return j, fmt.Errorf("--nccl-version=%s: a version is three numbers, as in 2.27.3", p.nccl)
	}
	for _, setting := range p.env {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || !strings.HasPrefix(name, "NCCL_") {
			return j, fmt.Errorf("--nccl-env=%s: a setting is NCCL_NAME=VALUE", setting)
		}
		j.Env[name] = value
	}
	return j, nil
}

// runTopo shows where GPUs and NICs are, and what NCCL makes of it.
func runTopo(ctx context.Context, c *config, p *topoConfig, stdout io.Writer, log *slog.Logger) (int, error) {
	var err error
	if c.nccl, err = p.job(); err != nil {
		return usage(err)
	}
	seen, _, err := c.observe(ctx, log, "infiniband", "pcie", "gpu", "gdr")
	if err != nil {
		return usage(err)
	}
	if seen.Node.GDR == nil && len(seen.Node.InfiniBand.Devices) > 0 {
		return usage(errors.New("the PCI tree could not be read in time: try --collect.timeout=30s"))
	}
	m := topo.New(seen.Host, &seen.Node)
	if p.json {
		err = printJSON(stdout, m)
	} else {
		err = onTerminal(stdout, m.Draw)
	}
	if err != nil {
		return usage(fmt.Errorf("cannot print the machine: %w", err))
	}
	return exitOK, nil
}
