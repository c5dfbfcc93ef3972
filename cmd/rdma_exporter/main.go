// Command rdma_exporter is a Prometheus exporter and alerting daemon for RDMA fabrics.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"rdma_exporter/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Until(ctx, os.Stderr, func() int { return cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr) }))
}
