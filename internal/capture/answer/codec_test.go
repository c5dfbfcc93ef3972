package answer

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/snapshot/accel"
)

// What the tests of single types call. The types are written by their tags.

// TestErrorsOfEntries: an error names the entry, the line, the key and the reason.
func TestErrorsOfEntries(t *testing.T) {
	of := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			of(Decode[host.RDMAPort]("rdma/a/1/port", []byte("state: 4\nlid: x\n"))),
			`parse rdma/a/1/port: malformed: line 2: "lid": "x" is not a number`,
		},
		{
			of(Decode[host.RDMAPort]("rdma/a/1/port", []byte("state\n"))),
			`parse rdma/a/1/port: malformed: line 1: "state": not KEY: VALUE`,
		},
		{
			of(Decode[[]host.Stat]("rdma/a/1/stats", []byte("a: b: -1\n"))),
			`parse rdma/a/1/stats: malformed: line 1: "a: b": "-1" is not a number`,
		},
		{
			of(Decode[[]host.RDMAHolder]("rdma/a/holders", []byte("1: contexts=1 queues=1\n"))),
			`parse rdma/a/holders: malformed: line 1: "1": "queues": unknown key`,
		},
		{
			of(Decode[[]host.HealthReporter]("devlink/health", []byte("pci/a: state=0\n"))),
			`parse devlink/health: malformed: line 1: "pci/a": incomplete name`,
		},
		{
			of(Decode[accel.Process]("processes/1", []byte("gpus: 0\nother: 1\n"))),
			`parse processes/1: malformed: line 2: "other": unknown key`,
		},
		{
			of(Decode[accel.Process]("processes/1", []byte("conf_NCCL_A: 1\n"))),
			`parse processes/1: malformed: line 1: "conf_NCCL_A": the line that announces it is missing`,
		},
		{
			of(Decode[accel.Process]("processes/1", []byte("hidden: yes\n"))),
			`parse processes/1: malformed: line 1: "hidden": "yes" is not a flag`,
		},
		{
			of(Decode[host.IBPortSettings]("x", []byte("vls: 0 1\n"))),
			`parse x: malformed: line 1: "vls": 2 values, want 16`,
		},
		{
			of(Decode[dcb.Config]("x", []byte("apps: 1\napp_dscp_8: 1\n"))),
			`parse x: malformed: line 2: "app_dscp_8": 8 exceeds 7`,
		},
		{
			of(Decode[host.KernelLogReading]("x", []byte("11: 5 module_error\n"))),
			`parse x: malformed: line 1: "11": 2 values, want 7`,
		},
		{
			of(DecodeAt[accel.Trace](TracePath, []byte("age: soon\n"), time.Time{})),
			`parse ebpf/trace: malformed: line 1: "age": "soon" is not a number of seconds`,
		},
	} {
		if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, access.ErrMalformed) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// TestTypeForms: a field without a line would be lost, a misspelt option ignored.
func TestTypeForms(t *testing.T) {
	known := strings.Fields("hex max len enum micros escaped omitempty counter open word any bare after set name none value columns note" +
		" group each lanes has")
	for of, form := range typeForms() {
		var named []string
		for line := range strings.Lines(strings.TrimSpace(form)) {
			named = append(named, strings.Fields(line)[0])
		}
		for i := range of.NumField() {
			if f := of.Field(i).Name; !slices.Contains(named, f) {
				t.Errorf("%s.%s has no form: what is not recorded is %q", of, f, notRecorded)
			}
		}
		if len(named) != of.NumField() {
			t.Errorf("%s: %d fields, %d in its form", of, of.NumField(), len(named))
		}
		for _, f := range RecordedFields(of) {
			for _, option := range strings.Split(f.form, ",")[1:] {
				if name, _, _ := strings.Cut(option, "="); !slices.Contains(known, name) {
					t.Errorf("%s.%s: unknown option %q", of, f.Name, name)
				}
			}
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && inner != timeType && typeForms()[inner] == "" {
				t.Errorf("%s.%s: %s has no form", of, f.Name, inner)
			}
		}
	}
}
