package replay

import (
	"reflect"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/test/archives"
)

func TestUnknownLinkModesArePlayedAsMissing(t *testing.T) {
	p := play(t, archives.Parse(t, archives.Header+"-- ethtool/eth0/linkmodes --\nspeed: 4294967295\nlanes: 0\n"))
	if got, err := p.LinkModes(t.Context(), "eth0"); err != nil || !reflect.DeepEqual(got, host.LinkModes{}) {
		t.Errorf("the kernel's marks of what it does not know: %+v, %v", got, err)
	}
}
