package sensors

import (
	"fmt"
	"strings"
	"testing"

	"rdma_exporter/collector/collectortest"
	"rdma_exporter/collector/shared"
)

func TestSensors(t *testing.T) {
	const hwmon = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/hwmon/hwmon4"
	file := func(name, content string) string { return "-- " + hwmon + "/" + name + " " + content }
	for _, c := range []struct {
		name, files string
		want        string
		issues      int
	}{
		{"an adapter and its module", file("name", "--\nmlx5\n") + file("temp1_input", "--\n67000\n") + file("temp1_crit", "--\n105000\n") + file("temp1_label", "--\nasic\n") +
			file("temp2_input", "--\n48125\n") + file("temp2_label", "--\nModule0\n"), "asic 67/105 Module0 48.125/-", 0},
		{"no label", file("temp1_input", "--\n-5000\n"), "temp1 -5/-", 0},
		{"what mlx5 prints below zero", file("temp1_input", "--\n8190500\n"), "temp1 -/-", 0},
		{"a limit of nothing", file("temp1_input", "--\n50000\n") + file("temp1_crit", "--\n0\n"), "temp1 50/-", 0},
		{"text", file("temp1_input", "--\nhot\n"), "temp1 -/-", 1},
		{"refused", file("temp1_input", "!EIO --\n"), "temp1 -/-", 1},
		{"a fan", file("fan1_input", "--\n5000\n"), "", 0},
		{"none", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := collectortest.ReaderOf(t, collectortest.PCIeTree(c.files))
			st := &sensorState{}
			st.read(r, collectortest.DeviceOf(t, r, shared.NewRoster(shared.Options{}).Of))
			var got []string
			text := func(v *float64) string {
				if v == nil {
					return "-"
				}
				return fmt.Sprint(*v)
			}
			for _, s := range st.last.Value.Sensors {
				got = append(got, s.Name+" "+text(s.Value)+"/"+text(s.Critical))
			}
			if strings.Join(got, " ") != c.want || len(r.Issues) != c.issues {
				t.Errorf("%q, issues %v", got, r.Issues)
			}
		})
	}
}
