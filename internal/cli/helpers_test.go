package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func mkfifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o644))
}

func decodeAll(t *testing.T, d expfmt.Decoder) (out []*dto.MetricFamily) {
	t.Helper()
	for {
		var mf dto.MetricFamily
		switch err := d.Decode(&mf); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		}
		out = append(out, &mf)
	}
}

const port0 = "sys/class/infiniband/mlx5_0/ports/1/"

// release lets a blocked reader of a FIFO go, and puts a counter in its place.
func release(t *testing.T, fifo string) {
	t.Helper()
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	must(t, err)
	must(t, os.Remove(fifo))
	must(t, os.WriteFile(fifo, []byte("0\n"), 0o644))
	must(t, w.Close())
}
