package fabric

import "rdma_exporter/internal/mad"

// Traffic is what a port transmits and receives, in bits per second.
type Traffic struct{ Transmit, Receive float64 }

// wordBits is the unit of PortXmitData and PortRcvData (IBA 16.1.3.5).
const wordBits = 32

// traffic is the average since an earlier reading. A port whose counters are missing or were cleared in between has none.
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

// rise is by how much a counter is higher than before; false where it is missing or lower.
func rise(now, then *Port, k mad.Counter) (float64, bool) {
	a, before := then.Counters.Get(k)
	b, after := now.Counters.Get(k)
	return float64(b - a), before && after && b >= a
}
