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
	dirs    []string
	driver  string
	aliases []string // of entries of silent.go
}

func main() {
	dir := flag.String("source", "", "directory of a kernel's source, or of NVIDIA's open kernel modules")
	all := flag.Bool("all", false, "list all messages with what they are recognised as")
	only := flag.String("subsystem", "", "this one alone, by its driver")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "sources: -source is missing: the directory of a kernel's source")
		os.Exit(2)
	}
	unknown, err := list(*dir, *only, *all)
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
			what := s.judge(m)
			counts[strings.Fields(what)[0]]++
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

// judge returns "kind KIND", "silent: REASON" or "unknown".
func (s *subsystem) judge(m message) string {
	for _, line := range s.lines(m) {
		if e, ok := kernellog.Parse(line); ok {
			return "kind " + string(e.Kind)
		}
	}
	for _, x := range silent {
		if (x.driver == "" || x.driver == s.driver) && x.form.MatchString(m.format) {
			return "silent: " + x.reason
		}
		if x.function != nil && (x.driver == "" || x.driver == s.driver) && x.function.MatchString(m.file+" "+m.function) {
			return "silent: " + x.reason
		}
	}
	return "unknown"
}

// prefixed are macros that print the function before the message.
var prefixed = regexp.MustCompile(`^mlx5_(core|ib)_|^esw_|^mlx5_ib`)

// lines returns lines as the kernel prints them, with a word of each kind for a string.
func (s *subsystem) lines(m message) (out []string) {
	before := s.driver + " 0000:5e:00.0: "
	switch {
	case strings.HasPrefix(m.macro, "pr_"), m.macro == "printk", strings.HasPrefix(m.macro, "nv_"), m.macro == "peer_err":
		before = ""
	case strings.HasPrefix(m.macro, "netdev_"), strings.HasPrefix(m.macro, "netif_"), strings.HasPrefix(m.macro, "en_"):
		before = s.driver + " 0000:5e:00.0 enp94s0: "
	case strings.HasPrefix(m.macro, "ibdev_"):
		before = s.driver + " 0000:5e:00.0 mlx5_0: "
	}
	if prefixed.MatchString(m.macro) {
		before += m.function + ":17:(pid 42): "
	}
	for _, text := range samples(m.format) {
		out = append(out, before+text, before+text+" ")
	}
	return out
}
