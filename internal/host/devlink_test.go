package host

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// reporter builds the body of a message. HEALTH_REPORTER_GET has more: time of the last dump, grace period, automatic
// actions.
func reporter(inner ...[]byte) []byte {
	return slices.Concat(attr(unix.DEVLINK_ATTR_BUS_NAME, str("pci")),
		attr(unix.DEVLINK_ATTR_DEV_NAME, str("0000:18:00.0")),
		attr(unix.DEVLINK_ATTR_HEALTH_REPORTER|nested, inner...))
}

func reporterName(name string) []byte { return attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME, str(name)) }

func TestParseHealthReporter(t *testing.T) {
	counts := slices.Concat(attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, u8(1)),
		attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(3)),
		attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT, u64(2)))
	whole := reporter(reporterName("fw_fatal"), counts, attr(119, u64(7)), attr(120, u64(60000)), attr(121, u8(1)))
	for _, c := range []struct {
		name string
		msg  []byte
		want HealthReporter
		bad  bool
	}{
		{"whole", whole, HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw_fatal", State: ptr(1), Errors: ptr(3), Recoveries: ptr(2)}, false},
		{"no counts", reporter(reporterName("fw")), HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw"}, false},
		{
			"of a port",
			slices.Concat(attr(unix.DEVLINK_ATTR_PORT_INDEX, u32(65535)), reporter(reporterName("tx"), attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, u8(0)))),
			HealthReporter{Bus: "pci", Device: "0000:18:00.0", Port: ptr(65535), Name: "tx", State: ptr(0)},
			false,
		},
		{
			"a state of a wrong size",
			reporter(reporterName("fw"), attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, make([]byte, 3)), attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(0))),
			HealthReporter{Bus: "pci", Device: "0000:18:00.0", Name: "fw", Errors: ptr(0)},
			false,
		},
		{"no name", reporter(counts), HealthReporter{}, true},
		{"no reporter", slices.Concat(attr(unix.DEVLINK_ATTR_BUS_NAME, str("pci")), attr(unix.DEVLINK_ATTR_DEV_NAME, str("0000:18:00.0"))), HealthReporter{}, true},
		{"no device", attr(unix.DEVLINK_ATTR_HEALTH_REPORTER, reporterName("fw")), HealthReporter{}, true},
		{"cut", whole[:40], HealthReporter{}, true},
		{"empty", nil, HealthReporter{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseHealthReporter(c.msg)
			if !reflect.DeepEqual(got, c.want) || c.bad != errors.Is(err, ErrMalformed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestOneMalformedReporterCostsItself(t *testing.T) {
	header := []byte{unix.DEVLINK_CMD_HEALTH_REPORTER_GET, unix.DEVLINK_GENL_VERSION, 0, 0}
	good := slices.Concat(header, reporter(reporterName("fw")))
	got, err := parseHealth([][]byte{good, header, {1}, slices.Concat(header, reporter(reporterName("vnic")))})
	if len(got) != 2 || got[0].Name != "fw" || got[1].Name != "vnic" || !errors.Is(err, ErrMalformed) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseHealth(nil); got != nil || err != nil {
		t.Errorf("a host without reporters: %+v, %v", got, err)
	}
}

func TestCopiedTreeHasNoHealthReporters(t *testing.T) {
	if got, err := (&devlinkClient{here: &network{copied: true}}).Health(t.Context()); got != nil || !IsAbsent(err) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParseHealthReporter(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(reporter(reporterName("fw"), attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE, u8(0)),
		attr(unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT, u64(1))))
	f.Add(slices.Concat(attr(unix.DEVLINK_ATTR_PORT_INDEX, u32(1)), reporter(reporterName("rx"))))
	f.Fuzz(func(t *testing.T, msg []byte) {
		r, err := parseHealthReporter(msg)
		switch {
		case err != nil && r != HealthReporter{}:
			t.Fatalf("%+v with %v", r, err)
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Fatal(err)
		case err == nil && (r.Bus == "" || r.Device == "" || r.Name == ""):
			t.Fatalf("%+v", r)
		}
	})
}
