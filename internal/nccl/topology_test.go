package nccl

import (
	_ "embed"
	"errors"
	"strings"
	"testing"

	"rdma_exporter/internal/pci"
)

// virtualXML is what a cloud gives its virtual machines with two of the planes of a board.
//
//go:embed testdata/virtual_topology.xml
var virtualXML string

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
			if got := top.Places[c.gpu].DistanceTo(top.Places[c.nic], false); got != c.want {
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
