package cli

import (
	"context"
	"testing"
)

// run runs the program to its end.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs lockedBuffer // a collection may outlive a program that cannot serve
	code = Run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
