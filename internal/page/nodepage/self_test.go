package nodepage

import "testing"

// TestFaultsOfCollectors: late devices are counted, and stuck devices are named.
func TestFaultsOfCollectors(t *testing.T) {
	for want, c := range map[string]Collector{
		"none":                       {},
		"1 device not read in time":  {Late: []string{"mlx5_0"}},
		"2 devices not read in time": {Late: []string{"mlx5_0", "mlx5_1"}},
		"stuck: mlx5_2; 1 device not read in time; 3 late": {
			Stuck: []string{"mlx5_2"}, Late: []string{"mlx5_0"}, Errors: map[string]float64{"late": 3},
		},
	} {
		if got := newCollectorRow(c).Faults; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
