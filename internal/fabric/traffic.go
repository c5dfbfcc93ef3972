package fabric

import "rdma_exporter/internal/mad"

// Traffic is what a port transmits and receives, in bits per second.
type Traffic struct{ Transmit, Receive float64 }

// wordBits is the unit of PortXmitData and PortRcvData (IBA 16.1.3.5).
const wordBits = 32

// traffic is the average since an earlier reading. A port whose counters are missing or were cleared in between has
// none.
func (r reading) traffic(before reading) map[End]Traffic {
	out := map[End]Traffic{}
	for e, now := range r.counters {
		then := before.counters[e]
		if then == nil {
			continue
		}
		seconds := now.Read.Sub(then.Read).Seconds()
		sent, ok := rise(now, then, mad.TransmitData)
		received, also := rise(now, then, mad.ReceiveData)
		if ok && also && seconds > 0 {
			out[e] = Traffic{wordBits * sent / seconds, wordBits * received / seconds}
		}
	}
	return out
}

// waits is the share of the time since an earlier reading in which a port had data to send and sent none, for lack of
// credits or of its turn. A port without it: the length of a tick is unknown, or the counter is missing, saturated or
// was cleared in between.
func (r reading) waits(before reading) map[End]float64 {
	out := map[End]float64{}
	for e, now := range r.counters {
		then := before.counters[e]
		if then == nil || now.TickBytes == 0 || now.Counters.Saturated(mad.TransmitWait) {
			continue
		}
		ticks, ok := rise(now, then, mad.TransmitWait)
		could := now.Info.Active.Rate() * now.Read.Sub(then.Read).Seconds()
		if ok && could > 0 {
			out[e] = min(1, ticks*now.TickBytes/could)
		}
	}
	return out
}

// rise is by how much a counter is higher than before; false where it is missing or lower.
func rise(now, then *Port, k mad.Counter) (float64, bool) {
	a, before := then.Counters.Get(k)
	b, after := now.Counters.Get(k)
	return float64(b - a), before && after && b >= a
}
