package cli

import (
	"net/http"
	"strings"
	"testing"

	"rdma_exporter/docs/runbooks"
	"rdma_exporter/test/machines"
)

// TestServedRunbooks: alerts of the API link to the page of the daemon, which is there, leads back, and has the policy
// of all pages.
func TestServedRunbooks(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("downshift-one"), "--web.external-url=https://proxy.example/gpu-1/")
	body := s.await(t, "/gpu-1/api/v1/alerts", "RDMALinkDegraded")
	if !strings.Contains(body, `"runbook_url":"https://proxy.example/gpu-1/runbooks/RDMALinkDegraded"`) {
		t.Errorf("%s", body)
	}
	_, first, _ := s.get(t, "/gpu-1/")
	if !strings.Contains(first, `href="runbooks/RDMALinkDegraded"`) || strings.Contains(first, "proxy.example") {
		t.Error("the page does not link relatively")
	}
	for _, name := range runbooks.Names() {
		status, text, h := s.get(t, "/gpu-1/runbooks/"+name)
		if status != http.StatusOK || !strings.Contains(text, "<h1>"+name+"</h1>") ||
			!strings.Contains(text, `<a href="../">`) || h.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v", name, status, h)
		}
		if strings.Count(text, "<script") != 1 { // copy.js
			t.Errorf("%s has scripts", name)
		}
		for _, no := range []string{"style=", `.md"`, "raw HTML omitted"} {
			if strings.Contains(text, no) {
				t.Errorf("%s has %s", name, no)
			}
		}
	}
}

// TestModulesAreNotRead: an interval of 0s switches their collector off, which is reported.
func TestModulesAreNotRead(t *testing.T) {
	s := start(t, "--replay="+machines.Fixture("optics-hot"), "--transceiver.interval=0s")
	_, body, _ := s.get(t, "/metrics")
	if !strings.Contains(body, `{alert="RDMATransceiverHot",fault="alarm",reason="collector_disabled"} 1`) ||
		strings.Contains(body, "\nrdma_transceiver_") {
		t.Errorf("%.2000s", body)
	}
}
