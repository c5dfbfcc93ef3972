//go:build e2e

package netlink

import (
	"bytes"
	"os"
	"testing"

	"rdma_exporter/internal/transceiver"
)

// TestModuleByIoctlInGuest reads the QSFP28 module of the netdev RDMA_MODULE_NETDEV both ways; test/kernel runs it in
// the virtual machine.
func TestModuleByIoctlInGuest(t *testing.T) {
	netdev := os.Getenv("RDMA_MODULE_NETDEV")
	if netdev == "" {
		t.Fatal("RDMA_MODULE_NETDEV is not set: test/kernel runs this")
	}
	c := &EthtoolClient{}
	for _, ref := range []transceiver.Ref{
		{Address: transceiver.AddressA0, Length: 2},
		{Address: transceiver.AddressA0, Offset: 22, Length: 2},
		{Address: transceiver.AddressA0, Offset: 128, Length: 128},
		{Address: transceiver.AddressA0, Page: 3, Offset: 128, Length: 72},
	} {
		want, err := c.ModuleEEPROM(t.Context(), netdev, ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := moduleByIoctl(netdev, ref); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: %x, %v; by page %x", ref, got, err, want)
		}
	}
	if got, err := moduleByIoctl(netdev,
		transceiver.Ref{Address: transceiver.AddressA0, Page: 4, Offset: 128, Length: 1}); err == nil {
		t.Errorf("beyond the image: %x", got)
	}
}
