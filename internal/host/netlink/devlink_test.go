package netlink

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// Reporter builds the body of a message. HEALTH_REPORTER_GET has more: time of the last dump, grace period, automatic
// actions.
func Reporter(inner ...[]byte) []byte {
	return slices.Concat(Attr(unix.DEVLINK_ATTR_BUS_NAME, str("pci")),
		Attr(unix.DEVLINK_ATTR_DEV_NAME, str("0000:18:00.0")),
		Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER|nested, inner...))
}

func ReporterName(name string) []byte { return Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME, str(name)) }

func TestParseHealthReporter(t *testing.T) {
	counts := slices.Concat(Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, U8(1)),
		Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(3)),
		Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT, u64(2)))
	whole := Reporter(ReporterName("fw_fatal"), counts, Attr(119, u64(7)), Attr(120, u64(60000)), Attr(121, U8(1)))
	for _, c := range []struct {
		name string
		msg  []byte
		want host.HealthReporter
		bad  bool
	}{
		{"whole", whole, host.HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw_fatal", State: ptr(1), Errors: ptr(3), Recoveries: ptr(2)}, false},
		{"no counts", Reporter(ReporterName("fw")), host.HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw"}, false},
		{
			"of a port",
			slices.Concat(Attr(unix.DEVLINK_ATTR_PORT_INDEX, u32(65535)), Reporter(ReporterName("tx"), Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, U8(0)))),
			host.HealthReporter{Bus: "pci", Device: "0000:18:00.0", Port: ptr(65535), Name: "tx", State: ptr(0)},
			false,
		},
		{
			"a state of a wrong size",
			Reporter(ReporterName("fw"), Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, make([]byte, 3)), Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(0))),
			host.HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw", Errors: ptr(0)},
			false,
		},
		{"no name", Reporter(counts), host.HealthReporter{}, true},
		{"no reporter", slices.Concat(Attr(unix.DEVLINK_ATTR_BUS_NAME, str("pci")), Attr(unix.DEVLINK_ATTR_DEV_NAME, str("0000:18:00.0"))), host.HealthReporter{}, true},
		{"no device", Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER, ReporterName("fw")), host.HealthReporter{}, true},
		{"cut", whole[:40], host.HealthReporter{}, true},
		{"empty", nil, host.HealthReporter{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseHealthReporter(c.msg)
			if !reflect.DeepEqual(got, c.want) || c.bad != errors.Is(err, access.ErrMalformed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestOneMalformedReporterCostsItself(t *testing.T) {
	header := []byte{unix.DEVLINK_CMD_HEALTH_REPORTER_GET, unix.DEVLINK_GENL_VERSION, 0, 0}
	good := slices.Concat(header, Reporter(ReporterName("fw")))
	got, err := ParseHealth([][]byte{good, header, {1}, slices.Concat(header, Reporter(ReporterName("vnic")))})
	if len(got) != 2 || got[0].Name != "fw" || got[1].Name != "vnic" || !errors.Is(err, access.ErrMalformed) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseHealth(nil); got != nil || err != nil {
		t.Errorf("a host without reporters: %+v, %v", got, err)
	}
}

func TestCopiedTreeHasNoHealthReporters(t *testing.T) {
	if got, err := (&DevlinkClient{Here: &network{Copied: true}}).Health(t.Context()); got != nil ||
		!access.IsAbsent(err) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParseHealthReporter(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(Reporter(ReporterName("fw"), Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, U8(0)),
		Attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(1))))
	f.Add(slices.Concat(Attr(unix.DEVLINK_ATTR_PORT_INDEX, u32(1)), Reporter(ReporterName("rx"))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		r, err := parseHealthReporter(msg)
		switch {
		case err != nil && r != host.HealthReporter{}:
			t.Fatalf("%+v with %v", r, err)
		case err != nil && !errors.Is(err, access.ErrMalformed):
			t.Fatal(err)
		case err == nil && (r.Bus == "" || r.Device == "" || r.Name == ""):
			t.Fatalf("%+v", r)
		}
	})
}
