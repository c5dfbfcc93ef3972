package web

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkPack compresses a response of 8 ports.
func BenchmarkPack(b *testing.B) {
	var text strings.Builder
	for name := range 90 {
		metric := fmt.Sprintf("rdma_port_counter_%02d_total", name)
		fmt.Fprintf(&text, "# HELP %s Packets of kind %d.\n# TYPE %s counter\n", metric, name, metric)
		for device := range 8 {
			fmt.Fprintf(&text, "%s{device=\"mlx5_%d\",port=\"1\"} %d\n", metric, device, name*name*device*7919)
		}
	}
	body := []byte(text.String())
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		pack(body)
	}
}
