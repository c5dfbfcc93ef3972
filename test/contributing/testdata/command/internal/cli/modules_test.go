package cli

import (
	"bytes"
	"strings"
	"testing"

	"rdma_exporter/internal/command"
	"rdma_exporter/test/machines"
)

func TestModules(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"--replay=" + machines.Fixture("dgx-h100-ib"), "modules"}, &out,
		&errs); code != command.OK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if !strings.Contains(out.String(), "\nib_core ") {
		t.Errorf("no ib_core in\n%s", out.String())
	}
}
