package command

import (
	"testing"
)

// TestClosest: the names that were meant.
func TestClosest(t *testing.T) {
	all := []string{"RDMAPortDown", "RDMALinkErrors", "RDMALinkFlapping", "RDMAPCIeErrors"}
	for name, want := range map[string]string{
		"rdmaportdown": "RDMAPortDown", "RDMAPortDwon": "RDMAPortDown", "LinkError": "RDMALinkErrors", "xyz": "", "": "",
	} {
		got := Closest(name, all)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q: %v, want %q", name, got, want)
		}
	}
}
