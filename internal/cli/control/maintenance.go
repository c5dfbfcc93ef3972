package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/model"

	"rdma_exporter/internal/command"
	"rdma_exporter/internal/control"
	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/maintenance"
)

// Maintenance is of "maintenance start".
type Maintenance struct {
	length string
	reason string
}

// Flags adds the flags.
func (p *Maintenance) Flags(a *kingpin.CmdClause) {
	a.Flag("for", "Duration of the maintenance, such as 30m, 2h or 1d; from 1m to 7d.").
		Required().PlaceHolder("DURATION").StringVar(&p.length)
	a.Flag("reason", "Reason, one line of up to 200 characters, shown on the page and by check.").
		PlaceHolder("TEXT").StringVar(&p.reason)
}

// Run runs the command.
func (p *Maintenance) Run(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	length, err := model.ParseDuration(p.length)
	if err != nil {
		return command.Usage(fmt.Errorf("--for=%s: must be a duration from 1m to 7d, such as 30m, 2h or 1d", p.length))
	}
	if err := errors.Join(maintenance.CheckLength(time.Duration(length)), maintenance.CheckReason(p.reason)); err != nil {
		return command.Usage(err)
	}
	q := url.Values{"for": {time.Duration(length).String()}, "reason": {p.reason}}
	return showMaintenance(ctx, c, http.MethodPost, control.MaintenanceStartPath, q, "%s\n", std)
}

// RunMaintenanceEnd is the command maintenance end.
func RunMaintenanceEnd(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showMaintenance(ctx, c, http.MethodPost, control.MaintenanceEndPath, nil, "Ended: %s\n", std)
}

// RunMaintenanceStatus is the command maintenance status.
func RunMaintenanceStatus(ctx context.Context, c *machine.Config, std command.Streams) (int, error) {
	return showMaintenance(ctx, c, http.MethodGet, control.MaintenancePath, nil, "%s\n", std)
}

func showMaintenance(
	ctx context.Context, c *machine.Config, method, path string, q url.Values, format string, std command.Streams,
) (int, error) {
	n, err := ask[*maintenance.Notice](ctx, c, method, path, q)
	return show(n, err, format, "No maintenance is announced.", std)
}
