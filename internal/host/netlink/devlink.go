package netlink

import (
	"context"
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
)

// DevlinkClient queries the generic netlink family "devlink". Health reporters exist since Linux 5.1. Their GET is the
// only command that only reports: diagnose and dump query the firmware, recover and test change the device.
type DevlinkClient struct {
	Here   *network
	family genlFamily
}

func (c *DevlinkClient) Health(context.Context) ([]host.HealthReporter, error) {
	return query(c.Here, "devlink/health", "", c.health)
}

func (c *DevlinkClient) health() ([]host.HealthReporter, error) {
	id, err := c.family.id(unix.DEVLINK_GENL_NAME)
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(id), unix.NLM_F_DUMP)
	req.AddData(genlHeader{unix.DEVLINK_CMD_HEALTH_REPORTER_GET, unix.DEVLINK_GENL_VERSION})
	msgs, err := repeatDump(func() ([][]byte, error) { return req.Execute(unix.NETLINK_GENERIC, 0) })
	if err != nil {
		return nil, err
	}
	return ParseHealth(msgs)
}

// ParseHealth parses the messages of a dump, each with its generic netlink header. A malformed message is skipped. The
// error is that of the first one.
func ParseHealth(msgs [][]byte) (out []host.HealthReporter, err error) {
	for _, m := range msgs {
		if len(m) < sizeofGenlHeader {
			if err == nil {
				err = fmt.Errorf("%w: empty reply", access.ErrMalformed)
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
func parseHealthReporter(msg []byte) (r host.HealthReporter, err error) {
	attributeList{
		unix.DEVLINK_ATTR_BUS_NAME:   &r.Bus,
		unix.DEVLINK_ATTR_DEV_NAME:   &r.Device,
		unix.DEVLINK_ATTR_PORT_INDEX: &r.Port,
		unix.DEVLINK_ATTR_HEALTH_REPORTER: attributeList{
			unix.DEVLINK_ATTR_HEALTH_REPORTER_NAME:          &r.Name,
			unix.DEVLINK_ATTR_HEALTH_REPORTER_STATE:         &r.State,
			unix.DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT:     &r.Errors,
			unix.DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT: &r.Recoveries,
		},
	}.decode(msg)
	if r.Bus == "" || r.Device == "" || r.Name == "" {
		return host.HealthReporter{}, fmt.Errorf("%w: health reporter without device or name: %s",
			access.ErrMalformed, strconv.Quote(r.Bus+"/"+r.Device+"/"+r.Name))
	}
	return r, nil
}
