package access

import (
	"errors"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	if err := Guard(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Guard(func() error { return ErrStuck }); !errors.Is(err, ErrStuck) || errors.Is(err, ErrPanic) {
		t.Error(err)
	}
	var none []int
	err := Guard(func() error { none[len(none)]++; return nil })
	if !errors.Is(err, ErrPanic) || ReasonOf(err) != Panic || !strings.Contains(err.Error(), "panics_test.go") {
		t.Error(err)
	}
}

// TestPanicInATurn: functions that run in their own goroutine are guarded, and the turn is free afterwards.
func TestPanicInATurn(t *testing.T) {
	turns := NewTurns()
	for range 2 {
		if err := turns.Do(t.Context(), "rtnl", func() { panic("odd answer") }); !errors.Is(err, ErrPanic) {
			t.Error(err)
		}
	}
	if err := turns.Do(t.Context(), "rtnl", func() {}); err != nil {
		t.Error(err)
	}
}
