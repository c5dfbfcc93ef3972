//go:build e2e

package page

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/browser"
)

// TestGlance: on a phone the first line says what is wrong, and the first finding begins above the middle of the
// screen.
func TestGlance(t *testing.T) {
	t.Parallel()
	for machine, want := range map[string]struct {
		lead     string
		findings bool
	}{
		"port-down":            {"port state DOWN, expected ACTIVE", true},
		"demo":                 {"PFC storm source, sending pause", true},
		"downshift-one":        {"200 of 400 Gb/s", true},
		"no-peermem-no-dmabuf": {"GPUDirect", true},
		"optics-lane-dark":     {"lane", true},
		"hgx-h200-roce":        {"Nothing is wrong: 8 NICs, 8 compute ports, 8 GPUs healthy", false},
	} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			b := browser.Start(t)
			b.Size(390, 844, true)
			b.Open(serve(t, machine))
			if *shots != "" {
				must(t, os.WriteFile(filepath.Join(*shots, "glance-"+machine+".png"), b.Shot(), 0o644))
			}
			if lead := b.Eval("document.querySelector('.lead').textContent"); !strings.Contains(lead, want.lead) {
				t.Errorf("first line %q, want %q", lead, want.lead)
			}
			top := b.Eval("Math.round((document.querySelector('.findings > li, .holds li') || {getBoundingClientRect: () => ({top: -1})}).getBoundingClientRect().top)")
			px, err := strconv.Atoi(top)
			must(t, err)
			t.Logf("first finding at %d px", px)
			if want.findings != (px >= 0) || px >= 844/2 {
				t.Errorf("the first finding begins at %d px of 844", px)
			}
		})
	}
}
