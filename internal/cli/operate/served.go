package operate

import (
	"io"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"

	"rdma_exporter/internal/machine"
	"rdma_exporter/internal/serve"
	"rdma_exporter/internal/serve/fabricdaemon"
	"rdma_exporter/internal/serve/nodedaemon"
)

// parseServed parses the command line of a daemon; an error if it is neither serve nor fabric.
func parseServed(args []string) (w *serve.Web, name string, err error) {
	a := kingpin.New("rdma_exporter", "").Terminate(nil).UsageWriter(io.Discard).ErrorWriter(io.Discard)
	var c machine.Config
	c.Flags(a)
	promslogflag.AddFlags(a, &promslog.Config{})
	var s nodedaemon.Command
	s.Flags(a.Command(nodedaemon.Name, "").Default())
	var f fabricdaemon.Command
	f.Flags(a.Command(fabricdaemon.Name, ""))
	if name, err = a.Parse(args); err != nil {
		return nil, "", err
	}
	w = &s.Web
	if name == fabricdaemon.Name {
		w = &f.Web
	}
	return w, name, w.Check()
}
