package collector

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// us is a reading of one flow at a second.
func us(at float64, transmit3 float64) pauseReading {
	return reading2(at, map[flow]float64{{"transmit", "3"}: transmit3})
}

func reading2(at float64, seconds map[flow]float64) pauseReading {
	return pauseReading{at: time.Unix(0, 0).Add(time.Duration(at * float64(time.Second))), seconds: seconds}
}

func TestPauses(t *testing.T) {
	t3, r3 := flow{"transmit", "3"}, flow{"receive", "3"}
	for _, c := range []struct {
		name    string
		samples []pauseReading
		want    string // sampled; stalled, ratios and their sum of transmit 3
	}{
		{"none", nil, "0"},
		{"the first reading is no sample", []pauseReading{us(1, 100)}, "0 0 [0 0 0 0 0 0 0] 0"},
		{"quiet", []pauseReading{us(1, 5), us(2, 5), us(3, 5)}, "2 0 [2 0 0 0 0 0 0] 0"},
		{"a storm", []pauseReading{us(1, 0), us(2, 0.95), us(3, 1.9), us(4, 1.9)}, "3 2 [1 0 0 0 0 0 2] 1.9"},
		{"half is not stalled", []pauseReading{us(1, 0), us(2, 0.5)}, "1 0 [0 0 0 0 1 0 0] 0.5"},
		{"bounds belong below", []pauseReading{us(0, 0), us(1, 0.01), us(2, 0.06), us(4, 0.26), us(8, 1.26), us(10, 3.06)}, "10 2 [1 1 1 1 0 1 0] 1.31"},
		{"no more than all of the time", []pauseReading{us(1, 0), us(2, 7)}, "1 1 [0 0 0 0 0 0 1] 1"},
		{"weighed by their length", []pauseReading{us(0, 0), us(1, 0), us(5, 3)}, "5 4 [1 0 0 0 0 1 0] 0.75"},
		{"a counter that was reset", []pauseReading{us(1, 9), us(2, 9.8), us(3, 0.2), us(4, 1)}, "3 2 [0 0 0 0 0 2 0] 1.6"},
		{"no time has passed", []pauseReading{us(1, 0), us(1, 1), us(0, 1), us(2, 0)}, "1 0 [1 0 0 0 0 0 0] 0"},
		{"a set that changes", []pauseReading{us(1, 0), reading2(2, map[flow]float64{r3: 1}), us(3, 9), us(4, 10)}, "3 1 [0 0 0 0 0 0 1] 1"},
		{"one that begins later", []pauseReading{reading2(1, map[flow]float64{r3: 1}), reading2(2, map[flow]float64{r3: 1, t3: 5}), reading2(3, map[flow]float64{r3: 1, t3: 6})}, "2 1 [0 0 0 0 0 0 1] 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPauses()
			for _, r := range c.samples {
				p.noteSample(r)
			}
			got := fmt.Sprint(p.sampled)
			if f := p.flows[t3]; f != nil {
				got += fmt.Sprintf(" %.3g %v %.3g", f.stalled, f.ratios, f.sum)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestRestIsNoSample(t *testing.T) {
	p := newPauses()
	p.noteSample(us(1, 0))
	p.noteSample(us(2, 1))
	p.interrupt()
	p.noteSample(us(300, 200))
	p.noteSample(us(301, 200))
	if f := p.flows[flow{"transmit", "3"}]; p.sampled != 2 || f.stalled != 1 {
		t.Errorf("sampled %v, stalled %v", p.sampled, f.stalled)
	}
}

func TestWhatMovedIsWanted(t *testing.T) {
	p := newPauses()
	at := func(s float64) bool { return p.wanted(us(s, 0).at) }
	p.noteRound(us(0, 100)) // from before the start
	p.noteRound(us(15, 100))
	if at(15) {
		t.Error("wanted without any pause")
	}
	p.noteRound(us(30, 100.001))
	if !at(30) || !at(629) || at(631) {
		t.Error("10 minutes after a pause")
	}
	p.noteSample(us(31, 100.001))
	p.noteSample(us(600, 100.1))
	if !at(1199) || at(1201) {
		t.Error("10 minutes after a pause in a sample")
	}
	p.noteRound(us(2000, 0)) // a reset
	p.noteRound(reading2(2015, map[flow]float64{{"receive", "0"}: 77}))
	if at(2016) {
		t.Error("a counter that begins has not moved")
	}
}

func TestFlowsInOrder(t *testing.T) {
	flows := []flow{{"receive", "3"}, {"transmit", "3"}, {"receive", "0"}, {"transmit", "0"}}
	slices.SortFunc(flows, compareFlows)
	if got := fmt.Sprint(flows); got != "[{transmit 0} {transmit 3} {receive 0} {receive 3}]" {
		t.Error(got)
	}
}
