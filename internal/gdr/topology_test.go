package gdr

import (
	"errors"
	"strings"
	"testing"

	"rdma_exporter/internal/pci"
)

// virtualXML is what a cloud gives its virtual machines with two of the planes of hopper.
const virtualXML = `<?xml version="1.0" encoding="UTF-8"?>
<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32 GT/s" link_width="16">
      <pci busid="0000:13:00.0" class="0x030200" link_speed="32 GT/s" link_width="16"/>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="32 GT/s" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="FFFF:FF:02.0"><pci busid="ffff:ff:03.0"><pci busid="0000:23:00.0"/></pci><pci busid="0000:24:00.0"/></pci>
  </cpu>
</system>`

func TestTopology(t *testing.T) {
	top, err := ParseTopology(strings.NewReader(virtualXML))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gpu, nic string
		want     pci.Distance
	}{
		{"0000:13:00.0", "0000:14:00.0", pci.PIX},
		{"0000:23:00.0", "0000:24:00.0", pci.PXB},
		{"0000:13:00.0", "0000:24:00.0", pci.SYS},
	} {
		t.Run(string(c.want), func(t *testing.T) {
			if got := top.places[c.gpu].DistanceTo(top.places[c.nic], false); got != c.want {
				t.Errorf("%s, %s: %s, want %s", c.gpu, c.nic, got, c.want)
			}
		})
	}
	if top.Has("0000:99:00.0") || (*Topology)(nil).Has("0000:13:00.0") {
		t.Error("it has what it has not")
	}
	tower := "<system>" + strings.Repeat(`<pci busid="0000:13:00.0">`, 1000) + strings.Repeat("</pci>", 1000) + "</system>"
	for _, text := range []string{"", "<system>", "<other/>", "no XML", "<system><cpu></system></cpu>", tower} {
		if _, err := ParseTopology(strings.NewReader(text)); !errors.Is(err, ErrTopology) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func FuzzParseTopology(f *testing.F) {
	f.Add(virtualXML)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = ParseTopology(strings.NewReader(text))
	})
}
