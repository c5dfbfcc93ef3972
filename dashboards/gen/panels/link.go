package panels

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Way is a link to a dashboard, or to a page of an exporter.
type Way struct{ Title, URL string }

func (w Way) link() dashboard.DashboardLink {
	return dashboard.DashboardLink{
		Title: w.Title, Type: dashboard.DashboardLinkTypeLink, Tags: []string{}, Url: &w.URL,
		TargetBlank: strings.HasPrefix(w.URL, "http"),
	}
}

// linksOf returns the Grafana links for ways; nil if there are none.
func linksOf(ways ...Way) (out []dashboard.DashboardLink) {
	for _, w := range ways {
		out = append(out, w.link())
	}
	return out
}
