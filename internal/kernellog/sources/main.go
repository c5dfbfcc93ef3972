// Command sources lists the messages of a kernel's source that no pattern of internal/kernellog matches and no entry of
// silent.go leaves out: what a newer kernel prints that this program does not know.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"rdma_exporter/internal/kernellog"
)

// subsystem is a part of a source, and what it prints before its messages.
type subsystem struct {
	dirs   []string
	driver string
}

func main() {
	dir := flag.String("source", "", "directories of kernels' sources and of NVIDIA's open kernel modules, separated by commas")
	all := flag.Bool("all", false, "list all messages with what they are recognised as, and entries of silent.go that match none")
	only := flag.String("subsystem", "", "this one alone, by its driver")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "sources: -source is missing: the directory of a kernel's source")
		os.Exit(2)
	}
	unknown, err := 0, error(nil)
	for _, root := range strings.Split(*dir, ",") {
		n, failed := list(root, *only, *all)
		unknown, err = unknown+n, cmp.Or(err, failed)
	}
	if *all {
		printUnused(*only)
	}
	if err == nil && unknown > 0 {
		err = fmt.Errorf("%d messages without a pattern or an entry of silent.go", unknown)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sources:", err)
		os.Exit(1)
	}
}

// list prints the messages that are not known, and a count of each subsystem. It returns their number.
func list(root, only string, all bool) (unknown int, err error) {
	for _, s := range subsystems {
		if only != "" && s.driver != only {
			continue
		}
		var messages []message
		for _, d := range s.dirs {
			found, err := extract(root, d)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return 0, err
			}
			messages = append(messages, found...)
		}
		slices.SortFunc(messages, func(a, b message) int {
			return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.format, b.format))
		})
		messages = slices.CompactFunc(messages, func(a, b message) bool { return a.file == b.file && a.format == b.format })
		counts := map[string]int{}
		for _, m := range messages {
			what := s.classify(m)
			counts[strings.TrimSuffix(strings.Fields(what)[0], ":")]++
			if what == "unknown" || all {
				fmt.Printf("%s\t%s %s\t%s\t%s\n", what, m.file, m.function, m.macro, m.format)
			}
		}
		if len(messages) > 0 {
			fmt.Printf("# %s: %d messages: %d recognised, %d silent, %d unknown\n", s.driver, len(messages),
				counts["kind"], counts["silent"], counts["unknown"])
		}
		unknown += counts["unknown"]
	}
	return unknown, nil
}

// classify returns "kind KIND", "silent: REASON" or "unknown".
func (s *subsystem) classify(m message) string {
	for _, line := range s.lines(m) {
		if e, ok := kernellog.Parse(line); ok {
			return "kind " + string(e.Kind)
		}
	}
	for i, x := range silent {
		if x.driver != "" && x.driver != s.driver {
			continue
		}
		if x.form != nil && x.form.MatchString(m.format) ||
			x.function != nil && x.function.MatchString(m.file+" "+m.function) {
			used[i] = true
			return "silent: " + x.reason
		}
	}
	return "unknown"
}

// used are the entries of silent.go that a message matched.
var used = map[int]bool{}

// printUnused lists the entries of a driver that no message of the sources matched: they can go.
func printUnused(driver string) {
	for i, x := range silent {
		if !used[i] && (driver == "" || driver == x.driver) {
			fmt.Printf("unused\t%s\t%v\t%v\t%s\n", x.driver, x.form, x.function, x.reason)
		}
	}
}

// prefixed are macros that print the function before the message.
var prefixed = regexp.MustCompile(`^mlx5_(core|ib|fpga)_`)

// before is what macros print before the message, by the begin of their names; the first that matches counts.
var before = []struct{ macro, text string }{
	{"ibdev_", "DRIVER 0000:5e:00.0 mlx5_0: "},
	{"mlx5_ib_", "infiniband mlx5_0: "},
	{"mlx4_ib_", "<mlx4_ib> FUNCTION: "},
	{"ipoib_", "ib0: "},
	{"esw_", "DRIVER 0000:5e:00.0: E-Switch: "},
	{"en_", "mlx4_en: enp94s0: "},
	{"peer_err", "nvidia-peermem FUNCTION:17 ERROR "},
	{"NV_DEV_PRINTF", "NVRM: GPU 0000:5e:00.0: "},
	{"pr_", ""},
	{"printk", ""},
	{"nv_", ""},
	{"net_", ""},
	{"netdev_", "DRIVER 0000:5e:00.0 enp94s0: "},
	{"netif_", "DRIVER 0000:5e:00.0 enp94s0: "},
	{"", "DRIVER 0000:5e:00.0: "},
}

// lines returns lines as the kernel prints them, with a word of each kind for a string.
func (s *subsystem) lines(m message) (out []string) {
	head := ""
	for _, b := range before {
		if strings.HasPrefix(m.macro, b.macro) {
			head = strings.NewReplacer("DRIVER", s.driver, "FUNCTION", m.function).Replace(b.text)
			break
		}
	}
	if prefixed.MatchString(m.macro) {
		head += m.function + ":17:(pid 42): "
	}
	head += m.tag
	for _, text := range samples(m.format) {
		out = append(out, head+text, head+text+" ")
	}
	return out
}
