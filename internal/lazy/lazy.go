// Package lazy builds values at their first use.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles an expression at its first use, and panics then if it is invalid. All expressions of the program are 3 MiB, and a process
// uses few of them.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
