package anonymise

import (
	"testing"

	"rdma_exporter/test/archives"
)

// TestAnonymiseKFD: IDs of AMD GPUs are replaced, one hive keeps one ID, and nothing else changes.
func TestAnonymiseKFD(t *testing.T) {
	const node = "sys/class/kfd/kfd/topology/nodes/"
	a := archives.Parse(t, archives.Header+"-- "+node+"0/properties --\nsimd_count 0\nhive_id 0\n-- "+node+
		"1/properties --\nvendor_id 4098\nhive_id 77123\nunique_id 990011\n-- "+
		node+"2/properties --\nhive_id 77123\nunique_id 88001122\n")
	Archive(a)
	got := contentsOf(a)
	for name, want := range map[string]string{
		"0s " + node + "0/properties": "simd_count 0\nhive_id 0\n",
		"0s " + node + "1/properties": "vendor_id 4098\nhive_id 1\nunique_id 3\n",
		"0s " + node + "2/properties": "hive_id 1\nunique_id 2\n",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
