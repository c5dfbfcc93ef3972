package reading

import "time"

// Last is the time of the last read of data that is not read in each round. The zero value means never, or due in the
// next round.
//
// A failed read keeps the data. It is repeated in the next round if Read is not called, otherwise when the data is due
// again.
type Last struct{ at time.Time }

// Due reports whether the data has to be read: it was never read, or is at least as old as the interval.
func (l *Last) Due(now time.Time, interval time.Duration) bool {
	return l.at.IsZero() || now.Sub(l.at) >= interval
}

// DueOf is Due for deferrable data of the reader's device: old data is kept while the device has used up its time
// budget.
func (l *Last) DueOf(r *Reader, interval time.Duration) bool {
	return l.at.IsZero() || r.Now().Sub(l.at) >= interval && r.Deferrable()
}

// Read records a read.
func (l *Last) Read(at time.Time) { l.at = at }

// Expire makes the data due in the next round.
func (l *Last) Expire() { l.at = time.Time{} }

// ReadIf records a complete read, and expires incomplete data.
func (l *Last) ReadIf(complete bool, at time.Time) {
	if l.at = at; !complete {
		l.Expire()
	}
}

// Known reports whether the data was read, and has not expired.
func (l *Last) Known() bool { return !l.at.IsZero() }

// Time returns the time of the last read; zero: never, or expired.
func (l *Last) Time() time.Time { return l.at }

// Within reports whether the data was read in the time before now.
func (l *Last) Within(now time.Time, age time.Duration) bool {
	return l.Known() && now.Sub(l.at) <= age
}

// Kept is a value with the time of its last read.
type Kept[T any] struct {
	Last
	Value T
}

// Keep records a value that was read.
func (k *Kept[T]) Keep(v T, at time.Time) { k.Value, k.at = v, at }
