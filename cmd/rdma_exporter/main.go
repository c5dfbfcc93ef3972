// Command rdma_exporter tells Prometheus and people how healthy the RDMA fabric is as this node sees it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"rdma_exporter/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
