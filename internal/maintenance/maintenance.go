// Package maintenance is the announcement of planned work on a host: its end and its reason. It does no I/O.
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

// maxReason is the maximum length of a reason in characters.
const maxReason = 200

// Announcement is saved in the state directory. It ends by the clock of the host, and at the latest when the host has
// been up for its length: a clock that is set back does not prolong it.
type Announcement struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
	Left   float64   `json:"left_seconds"` // remaining uptime, at Boot and Uptime
	Boot   string    `json:"boot"`         // boot id
	Uptime float64   `json:"uptime_seconds"`
}

// Notice is the current maintenance.
type Notice struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason,omitempty"`
}

// Clock is a point in time, by the clock of the host and by its uptime.
type Clock struct {
	Now    time.Time
	Boot   string // boot id; empty if it or the uptime cannot be read
	Uptime float64
}

// New announces maintenance that starts now.
func New(c Clock, length time.Duration, reason string) (Announcement, error) {
	if err := errors.Join(CheckLength(length), CheckReason(reason)); err != nil {
		return Announcement{}, err
	}
	return Announcement{
		Until: c.Now.UTC().Truncate(time.Second).Add(length), Reason: reason, Left: length.Seconds(),
		Boot: c.Boot, Uptime: c.Uptime,
	}, nil
}

// CheckLength validates the length of maintenance.
func CheckLength(length time.Duration) error {
	if length < Shortest || length > Longest {
		return errors.New("--for: must be from 1m to 7d")
	}
	return nil
}

// CheckReason validates a reason, which is shown in one line.
func CheckReason(reason string) error {
	switch {
	case !utf8.ValidString(reason):
		return errors.New("--reason: not valid UTF-8")
	case utf8.RuneCountInString(reason) > maxReason:
		return fmt.Errorf("--reason: must be at most %d characters long", maxReason)
	case strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return errors.New("--reason: must not contain line breaks or other control characters")
	}
	return nil
}

// clockError is the tolerated difference of the two clocks.
const clockError = time.Minute

// At returns the maintenance at a point in time; nil if there is none.
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

// Advance subtracts the uptime since the last call: all of it after a reboot.
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

// String returns the line on pages and in commands.
func (n Notice) String() string {
	s := "Maintenance until " + n.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	if n.Reason != "" {
		s += ": " + n.Reason
	}
	return s
}
