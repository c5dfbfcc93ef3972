package cli

import (
	"context"
	"testing"
	"time"
)

// run runs the program to its end.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs lockedBuffer // a collection may outlive a program that cannot serve
	code = Run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// until waits until something holds. Asking the program is work for it: a test that asks all the time takes the CPU from what it waits for.
func until(holds func() bool) {
	for !holds() {
		time.Sleep(50 * time.Millisecond)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
