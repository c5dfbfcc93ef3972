// Command ber writes a rule test of 64 healthy links: 32 of NDR, 16 of HDR and 16 of 400GbE, with the corrected errors
// that such links have, and two or three symbol errors a week, at random. None has an alert.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
)

const (
	step   = 300   // seconds between samples
	symbol = 1e-17 // symbol errors by bits, after FEC: the criteria of docs/ber.md are 1e-15 and 1e-14
)

// speed is a kind of link.
type speed struct {
	links     int
	layer     string
	hca       string
	fec       string
	bits      float64 // per second
	own       string  // counter of symbol errors
	neighbour bool    // the far end is read
}

var speeds = []speed{
	{32, "InfiniBand", "MT4129", "RS(544,514) PLR", 400e9, `rdma_port_symbol_errors_total{%s}`, true},
	{16, "InfiniBand", "MT4123", "RS(544,514)", 200e9, `rdma_port_symbol_errors_total{%s}`, true},
	{16, "Ethernet", "MT4129", "RS(544,514)", 400e9, `rdma_port_pcs_symbol_errors_total{%s,netdev="n"}`, false},
}

func main() {
	days := flag.Int("days", 1, "length")
	rules := flag.String("rules", "../node", "directory of the rules, as seen from the file")
	flag.Parse()
	w := bufio.NewWriter(os.Stdout)
	write(w, *days, *rules)
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(w *bufio.Writer, days int, rules string) {
	n := days * 86400 / step
	source := rand.New(rand.NewPCG(1, 2)) // the same in each run
	fmt.Fprintf(w,
		"# Written by go run ./test/ber -days %d. 64 healthy links, sampled each 5m: none has an alert.\n", days)
	var files []string
	for _, f := range []string{"link", "link_ber", "link_errors", "symptoms", "faults", "alerts"} {
		files = append(files, rules+"/"+f+".rules.yml")
	}
	fmt.Fprintf(w, "rule_files: [%s]\n", strings.Join(files, ", "))
	fmt.Fprintln(w, "group_eval_order: [rdma-link, rdma-link-ber, rdma-link-errors, rdma-symptoms, rdma-faults, rdma-alerts]\nevaluation_interval: 5m\ntests:")
	fmt.Fprintf(w, "  - name: healthy links over %dd\n    interval: 5m\n    input_series:\n", days)
	series := func(values, format string, args ...any) {
		fmt.Fprintf(w, "      - series: "+format+"\n        values: %s\n", append(args, values)...)
	}
	link := 0
	for _, s := range speeds {
		for range s.links {
			port := fmt.Sprintf(`instance="h%d",job="j",device="mlx5_%d",port="1"`, link/8, link%8)
			link++
			always := func(v float64) string { return fmt.Sprintf("%.0fx%d", v, n) }
			series(always(4), "rdma_port_state_id{%s}", port)
			series(always(s.bits/8), "rdma_port_rate_bytes_per_second{%s}", port)
			series(always(4), "rdma_port_width_lanes{%s}", port)
			series(always(1), "rdma_port_info{%s,netdev=\"\",link_layer=%q,role=\"compute\"}", port, s.layer)
			series(always(1), "rdma_device_info{%s,hca_type=%q}", strings.TrimSuffix(port, `,port="1"`), s.hca)
			series(always(1), "rdma_port_fec_info{%s,netdev=\"\",mode=%q}", port, s.fec)
			raw := math.Pow(10, -10+2.5*source.Float64()) // before FEC, 1e-10 to 3e-8
			series(fmt.Sprintf("0+%.0fx%d", raw*s.bits*step, n), `rdma_port_fec_corrected_bit_errors_total{%s,netdev="n"}`, port)
			series(symbols(source, s.bits, n), s.own, port)
			if s.neighbour {
				series(symbols(source, s.bits, n), `rdma_port_neighbour_errors_total{%s,error="symbol_errors"}`, port)
				series(fmt.Sprintf("0+%.0fx%d", 0.7*raw*s.bits*step, n),
					"rdma_port_neighbour_fec_corrected_symbols_total{%s}", port)
				series(always(0), "rdma_port_neighbour_fec_uncorrectable_blocks_total{%s}", port)
			}
		}
	}
	fmt.Fprint(w, "    promql_expr_test:\n      # each link is evaluated\n")
	fmt.Fprintf(w, `      - {expr: 'count(port:rdma_link_raw_ber:ratio10m{end="own"} > 0 and on (instance, device) port:rdma_link_symbol_errors:limit12m)', eval_time: %dd, exp_samples: [{labels: '{}', value: 64}]}`+"\n", days)
	fmt.Fprintf(w, "      - {expr: 'count(last_over_time(ALERTS[%dd]))', eval_time: %dd, exp_samples: []}\n", days, days)
}

// symbols returns a counter with errors at random.
func symbols(source *rand.Rand, bits float64, n int) string {
	var out []string
	count, since := 0, 0
	for i := range n {
		if source.Float64() < symbol*bits*step {
			out = append(out, fmt.Sprintf("%dx%d", count, i-since-1))
			count, since = count+1, i
		}
	}
	return strings.Join(append(out, fmt.Sprintf("%dx%d", count, n-since)), " ")
}
