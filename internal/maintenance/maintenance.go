// Package maintenance is planned work on a host: until when it is announced, and why (pure).
package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of how long maintenance may be announced for.
const (
	Shortest = time.Minute
	Longest  = 7 * 24 * time.Hour
)

// maxReason is how long a reason may be, in characters.
const maxReason = 200

// Announcement is kept in the state directory. It ends by the clock of the host, and at the latest when the host has been up for as long as
// was asked: a clock that is set back does not prolong it.
type Announcement struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
	Left   float64   `json:"left_seconds"` // of the time that the host may be up, at the moment of the following two
	Boot   string    `json:"boot"`         // boot id
	Uptime float64   `json:"uptime_seconds"`
}

// Notice is maintenance that is announced at present.
type Notice struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
}

// Clock is a moment, by the clock of the host and by the time since it booted.
type Clock struct {
	Now    time.Time
	Boot   string // boot id; empty where it and the uptime cannot be read
	Uptime float64
}

// New announces maintenance from now on.
func New(c Clock, length time.Duration, reason string) (Announcement, error) {
	if err := errors.Join(CheckLength(length), CheckReason(reason)); err != nil {
		return Announcement{}, err
	}
	return Announcement{Until: c.Now.UTC().Truncate(time.Second).Add(length), Reason: reason, Left: length.Seconds(), Boot: c.Boot, Uptime: c.Uptime}, nil
}

// CheckLength returns why maintenance cannot be announced for so long.
func CheckLength(length time.Duration) error {
	if length < Shortest || length > Longest {
		return errors.New("--for: has to be from 1m to 7d")
	}
	return nil
}

// CheckReason returns why a text is no reason: it is shown in one line.
func CheckReason(reason string) error {
	switch {
	case !utf8.ValidString(reason):
		return errors.New("--reason: is not valid UTF-8")
	case utf8.RuneCountInString(reason) > maxReason:
		return fmt.Errorf("--reason: has to be %d characters or fewer", maxReason)
	case strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return errors.New("--reason: has a line break or another control character")
	}
	return nil
}

// clockError is by how much the two clocks may differ without one of them having been set.
const clockError = time.Minute

// At returns what is announced at a moment; nil where that has ended, or nothing is announced.
func (a Announcement) At(c Clock) *Notice {
	if a.Until.IsZero() {
		return nil
	}
	left := a.Advance(c).Left
	if left <= 0 || !c.Now.Before(a.Until) {
		return nil
	}
	until := a.Until
	if latest := c.Now.Add(time.Duration(left * float64(time.Second))); until.Sub(latest) > clockError {
		until = latest.UTC().Truncate(time.Second)
	}
	return &Notice{until, a.Reason}
}

// Advance counts the time that the host has been up since: all of it where it has booted meanwhile.
func (a Announcement) Advance(c Clock) Announcement {
	if c.Boot == "" { // it could not be read
		return a
	}
	up := c.Uptime
	if a.Boot == c.Boot {
		up -= a.Uptime
	}
	if a.Boot != "" {
		a.Left -= max(0, up)
	}
	a.Boot, a.Uptime = c.Boot, c.Uptime
	return a
}

// String is the line that pages and commands show.
func (n Notice) String() string {
	s := "Maintenance until " + n.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	if n.Reason != "" {
		s += ": " + n.Reason
	}
	return s
}
