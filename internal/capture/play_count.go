package capture

import (
	"path"
	"regexp"
	"strconv"
	"strings"
)

// counterPath tells files whose numbers only rise from those that are readings.
var counterPath = regexp.MustCompile(`/(counters|hw_counters|statistics)/[^/]+$`)

// notCounter tells what lies among the counters and does not rise by itself: the life of the kernel's cache, the shares of time that
// mlx5 was held up by PCIe, and the settings beside the statistics of pause and FEC.
func notCounter(p string) bool {
	switch path.Base(p) {
	case "lifespan", "outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "autoneg", "rx", "tx", "active":
		return true
	}
	return false
}

// countedAnswer are the answers whose lines are counters.
var countedAnswer = regexp.MustCompile(`^(rdma|ethtool)/.*/(stats|pause|fec)$|^subnet/.*/agent/`)

func (p *Player) count(e Entry) {
	if isGPU(e.Path) {
		p.countGPU(e)
		return
	}
	if isManager(e.Path) {
		p.countManager(e)
		return
	}
	if !counterPath.MatchString(e.Path) || notCounter(e.Path) {
		if countedAnswer.MatchString(e.Path) {
			p.countStats(e)
		}
		return
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(string(e.Data)), 10, 64); err == nil {
		p.step(e.Path, n)
	}
}

func (p *Player) countStats(e Entry) {
	stats, err := decodeStats(e.Path, e.Data, nil)
	if err != nil {
		return
	}
	for _, s := range stats {
		if !notCounter(s.Name) {
			p.step(e.Path+"/"+s.Name, s.Value)
		}
	}
}

func (p *Player) step(key string, n uint64) {
	if old, ok := p.numbers[key]; ok && n > old {
		p.steps[key] = n - old
	}
	p.numbers[key] = n
}

// onward is what a counter has risen by since the last round; p.mu is held.
func (p *Player) onward(key string) uint64 {
	n := len(p.archive.Rounds)
	step := p.steps[key]
	if step == 0 || n < 2 || p.next < n {
		return 0
	}
	interval := p.archive.Rounds[n-1].At - p.archive.Rounds[n-2].At
	return step * uint64(max(0, p.now.Sub(p.Last()))/interval)
}

// goOn adds to each field what it has risen by since the last round.
func (p *Player) goOn(name string, fields []field) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, f := range fields {
		if *f.value != nil {
			**f.value += p.onward(name + "/" + f.name)
		}
	}
}
