package dashboards

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestDegraded: an uplink at a quarter of what both ends support counts although both have no more enabled; one to a
// host, one at half, and one at its rate do not. Once the last sweep is older than RDMAFabricUnseen allows, the
// count is
// unknown.
func TestDegraded(t *testing.T) {
	d := load(t)["subnet.json"]
	i := slices.IndexFunc(d.Panels, func(p panel) bool { return p.Title == "Faults of links" })
	expr := strings.NewReplacer("$cluster", ".*", "$fabric_job", "f", "$fabric", "x", "$switch", ".*").
		Replace(d.Panels[i].Targets[1].Expr)
	for name, c := range map[string]struct {
		rate, enabled string
		lanes         string
		neighbour     string
		want          float64
	}{
		"uplink at its rate":            {"12.5e9", "12.5e9", "4", "spine", 0},
		"uplink at a quarter":           {"3.125e9", "3.125e9", "1", "spine", 1},
		"uplink at half":                {"6.25e9", "6.25e9", "4", "spine", 0},
		"uplink below what is enabled":  {"6.25e9", "12.5e9", "4", "spine", 1},
		"host link that both ends set":  {"3.125e9", "3.125e9", "1", "host", 0},
		"host link below what they set": {"3.125e9", "12.5e9", "4", "host", 1},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(name, more, value string) string {
				return name + `{job="f",instance="x",` + more + `} ` + value + "x20\n"
			}
			one := `node_guid="1",port="3"`
			s := promqltest.LoadedStorage(t, "load 1m\n"+
				of("rdma_fabric_node_info", `node="leaf",node_guid="1",node_type="switch"`, "1")+
				of("rdma_fabric_node_info", `node="spine",node_guid="2",node_type="switch"`, "1")+
				of("rdma_fabric_node_info", `node="host",node_guid="3",node_type="channel_adapter"`, "1")+
				of("rdma_fabric_link_info",
					one+`,end="1",node="leaf",neighbour="`+c.neighbour+`",neighbour_port="1",neighbour_guid="`+
						map[string]string{"spine": "2", "host": "3"}[c.neighbour]+`"`, "1")+
				of("rdma_fabric_port_rate_bytes_per_second", one, c.rate)+
				of("rdma_fabric_link_enabled_rate_bytes_per_second", one, c.enabled)+
				of("rdma_fabric_link_supported_rate_bytes_per_second", one, "12.5e9")+
				of("rdma_fabric_port_width_lanes", one, c.lanes)+of("rdma_fabric_link_enabled_width_lanes", one, c.lanes)+
				of("rdma_fabric_link_supported_width_lanes", one, "4")+
				of("rdma_fabric_links", `a=""`, "1")+of("rdma_fabric_sweep_timestamp_seconds", `a=""`, "0")+
				of("rdma_fabric_sweep_interval_seconds", `a=""`, "60"))
			e := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true})
			for at, want := range map[time.Duration]float64{
				time.Minute: c.want, 11 * time.Minute: c.want,
				13 * time.Minute: -1,
			} {
				q, err := e.NewInstantQuery(t.Context(), s, nil, expr, time.Unix(0, 0).Add(at))
				if err != nil {
					t.Fatal(err)
				}
				v, err := q.Exec(t.Context()).Vector()
				if err != nil || len(v) != 1 || v[0].F != want {
					t.Errorf("%v, %v, want %v", v, err, want)
				}
			}
		})
	}
}
