package infiniband

import (
	"fmt"
	"testing"

	"rdma_exporter/internal/snapshot"
)

func TestMarkSubDevices(t *testing.T) {
	device := func(name, address, guid string, lanes uint64) snapshot.Device {
		return snapshot.Device{
			Name: name, PCIAddress: address, NodeGUID: guid, FunctionType: snapshot.Physical,
			Ports: []snapshot.Port{{Number: 1, Lanes: &lanes}},
		}
	}
	const a, b, guid, other = "0000:0b:00.0", "0000:0b:00.1", "3825:f303:0000:1100", "3825:f303:0000:1101"
	for name, c := range map[string]struct {
		devices []snapshot.Device
		want    string
	}{
		"an SMI device":       {[]snapshot.Device{device("mlx5_0", a, guid, 4), device("smi1", a, guid, 1)}, "[physical subfunction]"},
		"before its parent":   {[]snapshot.Device{device("a_smi", a, guid, 1), device("mlx5_0", a, guid, 4)}, "[subfunction physical]"},
		"of equals the first": {[]snapshot.Device{device("mlx5_0", a, guid, 4), device("smi1", a, guid, 4)}, "[physical subfunction]"},
		"the parent without a link": {
			[]snapshot.Device{device("mlx5_0", a, guid, 0), device("smi1", a, guid, 1)}, "[physical subfunction]",
		},
		"no link, before its parent": {
			[]snapshot.Device{device("smi1", a, guid, 0), device("xmlx5_0", a, guid, 0)}, "[subfunction physical]",
		},
		"two functions of a card": {[]snapshot.Device{device("mlx5_0", a, guid, 4), device("mlx5_1", b, guid, 1)}, "[physical physical]"},
		"two GUIDs":               {[]snapshot.Device{device("mlx5_0", a, guid, 4), device("mlx5_1", a, other, 1)}, "[physical physical]"},
		"identity unknown":        {[]snapshot.Device{device("rxe0", "", "", 1), device("rxe1", "", "", 1)}, "[physical physical]"},
	} {
		markSubDevices(c.devices)
		var got []snapshot.FunctionType
		for i := range c.devices {
			got = append(got, c.devices[i].FunctionType)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
