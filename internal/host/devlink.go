package host

import (
	"context"
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// devlink numbers, include/uapi/linux/devlink.h. This is the only health reporter command that only reports: diagnose
// and dump query the firmware, recover and test change the device.
const (
	devlinkFamily  = "devlink"
	devlinkVersion = 1

	devlinkCmdHealthReporterGet = 52

	devlinkAttrBusName               = 1
	devlinkAttrDevName               = 2
	devlinkAttrPortIndex             = 3
	devlinkAttrHealthReporter        = 114
	devlinkAttrHealthReporterName    = 115
	devlinkAttrHealthReporterState   = 116
	devlinkAttrHealthReporterErrors  = 117
	devlinkAttrHealthReporterRecover = 118
)

// devlinkClient queries the generic netlink family "devlink". Health reporters exist since Linux 5.1.
type devlinkClient struct {
	here   *network
	family genlFamily
}

func (c *devlinkClient) Health(context.Context) ([]HealthReporter, error) {
	return query(c.here, "devlink/health", "", c.health)
}

func (c *devlinkClient) health() ([]HealthReporter, error) {
	id, err := c.family.id(devlinkFamily)
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(id), unix.NLM_F_DUMP)
	req.AddData(genlHeader{devlinkCmdHealthReporterGet, devlinkVersion})
	msgs, err := whole(func() ([][]byte, error) { return req.Execute(unix.NETLINK_GENERIC, 0) })
	if err != nil {
		return nil, err
	}
	return parseHealth(msgs)
}

// parseHealth parses the messages of a dump, each with its generic netlink header. A malformed message is skipped. The
// error is that of the first one.
func parseHealth(msgs [][]byte) (out []HealthReporter, err error) {
	for _, m := range msgs {
		if len(m) < sizeofGenlHeader {
			if err == nil {
				err = fmt.Errorf("%w: empty reply", ErrMalformed)
			}
			continue
		}
		r, bad := parseHealthReporter(m[sizeofGenlHeader:])
		switch {
		case bad == nil:
			out = append(out, r)
		case err == nil:
			err = bad
		}
	}
	return out, err
}

// parseHealthReporter parses the body of one DEVLINK_CMD_HEALTH_REPORTER_GET message.
func parseHealthReporter(msg []byte) (r HealthReporter, err error) {
	attributes{
		devlinkAttrBusName: &r.Bus, devlinkAttrDevName: &r.Device, devlinkAttrPortIndex: &r.Port,
		devlinkAttrHealthReporter: attributes{
			devlinkAttrHealthReporterName: &r.Name, devlinkAttrHealthReporterState: &r.State,
			devlinkAttrHealthReporterErrors: &r.Errors, devlinkAttrHealthReporterRecover: &r.Recoveries,
		},
	}.decode(msg)
	if r.Bus == "" || r.Device == "" || r.Name == "" {
		return HealthReporter{}, fmt.Errorf("%w: health reporter without device or name: %s",
			ErrMalformed, strconv.Quote(r.Bus+"/"+r.Device+"/"+r.Name))
	}
	return r, nil
}
