// Package lazy builds values at their first use.
package lazy

import (
	"regexp"
	"sync"
)

// expression is not a sync.OnceValue, whose functions the compiler would repeat for each expression of the program: 0.4
// MB of code.
type expression struct {
	once sync.Once
	text string
	made *regexp.Regexp
}

func (e *expression) get() *regexp.Regexp {
	e.once.Do(func() { e.made = regexp.MustCompile(e.text) })
	return e.made
}

// Regexp returns a function that compiles an expression at its first use, and panics then if it is invalid;
// internal/deptest compiles all. It is for the expressions of capture, host, kernellog and nccl: compiled, they are 1.2
// MB, of which a process uses little. Others are package variables.
func Regexp(expr string) func() *regexp.Regexp { return (&expression{text: expr}).get }
