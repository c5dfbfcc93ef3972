package host

import (
	"context"
	"errors"
	"fmt"

	"rdma_exporter/internal/mad"
	"rdma_exporter/internal/snapshot"
)

// IBPortSettings is the answer to Subnet.PortSettings.
type IBPortSettings = snapshot.IBPortSettings

// PortSettingsRequests is the number of datagrams of PortSettings without losses.
const PortSettingsRequests = 2

// PortSettings queries the local port by a directed route, which needs no LID.
func (s subnetClient) PortSettings(ctx context.Context, device string, port int) (IBPortSettings, error) {
	return querySubnet(s, device, port, fmt.Sprintf("the settings of port %d", port),
		func(c *mad.Client) (IBPortSettings, error) { return queryPortSettings(ctx, c, port) }, mad.ClassSubnetDirected)
}

func queryPortSettings(ctx context.Context, c *mad.Client, port int) (out IBPortSettings, err error) {
	info, err := c.PortInfo(ctx, mad.Local(), port)
	if err != nil {
		return out, err
	}
	if !info.Up() { // the values are those of the last link
		return out, nil
	}
	out.MTU, out.DataVLs = positive(info.MTU), positive(info.DataVLs)
	vls, err := c.SLToVL(ctx, mad.Local(), port)
	var status mad.StatusError
	if errors.As(err, &status) { // optional with one virtual lane
		return out, nil
	}
	if err == nil {
		out.VLs = vls[:]
	}
	return out, err
}

func positive(n int) *uint64 {
	if n <= 0 {
		return nil
	}
	v := uint64(n)
	return &v
}
