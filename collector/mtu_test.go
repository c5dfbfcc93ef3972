package collector

import "testing"

func TestRoCEMTU(t *testing.T) {
	for netdev, want := range map[uint64]uint64{
		9000: 4096, 65535: 4096, 4192: 4096, 4191: 2048, 2144: 2048, 2143: 1024, 1500: 1024, 1120: 1024, 1119: 512, 608: 512, 607: 256, 352: 256, 351: 0, 68: 0, 0: 0,
	} {
		if got, ok := roceMTU(netdev); got != want || ok != (want != 0) {
			t.Errorf("%d: %d %v, want %d", netdev, got, ok, want)
		}
	}
}
