package kernellog

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// index finds the patterns that a text may match: 20,000 lines of a boot and some 250 patterns are too many pairs for
// their expressions. It is made of what the expressions say: the literals with which a text must begin, or which it
// must contain.
type index struct {
	begin    map[string][]*candidate // by the first keyLength bytes
	contains []needle
	always   []*candidate
}

// candidate is a pattern at its place in the order.
type candidate struct {
	*Pattern
	place int
	form  func() *regexp.Regexp // compiled at its first use: a healthy host prints few of the messages
}

type needle struct {
	text string
	of   *candidate
}

const (
	keyLength   = 3
	maxLiterals = 256
)

// byDriver has the patterns that a line of a driver may match: of the drivers that a pattern names, of all others (""),
// and of an unknown driver of an RDMA device ("*").
var byDriver = sync.OnceValue(func() map[string]*index {
	m := map[string]*index{"": {}, "*": {}}
	for i := range Patterns {
		for d := range Patterns[i].drivers {
			m[d] = &index{}
		}
	}
	for _, x := range m {
		x.begin = map[string][]*candidate{}
	}
	for i := range Patterns {
		c := &candidate{Pattern: &Patterns[i], place: i, form: compile(Patterns[i].form)}
		expr, err := syntax.Parse(c.Pattern.form, syntax.Perl)
		if err != nil {
			panic(err)
		}
		begin, contains := literals(expr)
		for d, x := range m {
			if c.drivers == nil || c.drivers[d] || d == "*" {
				x.add(c, begin, contains)
			}
		}
	}
	return m
})

func compile(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func (x *index) add(c *candidate, begin, contains []string) {
	if tooShort(begin) || tooShort(contains) {
		x.always = append(x.always, c)
		return
	}
	for _, b := range begin {
		if key := b[:keyLength]; !slices.Contains(x.begin[key], c) {
			x.begin[key] = append(x.begin[key], c)
		}
	}
	for _, text := range contains {
		x.contains = append(x.contains, needle{text, c})
	}
}

func tooShort(list []string) bool {
	return len(list) > maxLiterals || slices.ContainsFunc(list, func(s string) bool { return len(s) < keyLength })
}

// find returns the candidates of a text, in order.
func (x *index) find(text string) []*candidate {
	text = strings.ToLower(text)
	out := slices.Clone(x.always)
	if len(text) >= keyLength {
		out = append(out, x.begin[text[:keyLength]]...)
	}
	for i := range x.contains {
		if n := &x.contains[i]; strings.Contains(text, n.text) {
			out = append(out, n.of)
		}
	}
	slices.SortFunc(out, func(a, b *candidate) int { return a.place - b.place })
	return slices.Compact(out)
}

// candidates are the patterns that the message of a line with this prefix may match, in order.
func (e *Event) candidates(text string) []*candidate {
	driver := e.Driver
	if driver == "" && e.Device != "" {
		driver = "*"
	}
	x, ok := byDriver()[driver]
	if !ok {
		x = byDriver()[""]
	}
	return x.find(text)
}

func lower(text ...rune) string { return strings.ToLower(string(text)) }

// literals returns texts in lower case with one of which a text begins, or of which it contains one, if an expression
// matches it. An empty text is in them if there is no such.
func literals(expr *syntax.Regexp) (begin, contains []string) {
	switch {
	case expr.Op == syntax.OpAlternate:
		for _, sub := range expr.Sub {
			b, c := literals(sub)
			begin, contains = append(begin, b...), append(contains, c...)
		}
		return begin, contains
	case expr.Op == syntax.OpCapture:
		return literals(expr.Sub[0])
	case expr.Op == syntax.OpConcat && isBegin(expr.Sub[0]):
		if begin = beginnings(expr.Sub[1:]); !tooShort(begin) {
			return begin, nil
		}
	}
	return nil, required(expr)
}

func isBegin(expr *syntax.Regexp) bool {
	return expr.Op == syntax.OpBeginText || expr.Op == syntax.OpBeginLine
}

// beginnings returns texts with one of which a text begins that a sequence of expressions matches.
func beginnings(list []*syntax.Regexp) (out []string) {
	if len(list) == 0 {
		return []string{""}
	}
	expr, rest := list[0], list[1:]
	with := func(sub ...*syntax.Regexp) []string { return beginnings(slices.Concat(sub, rest)) }
	after := func(text string) {
		if len(text) >= keyLength {
			out = append(out, text)
			return
		}
		for _, r := range beginnings(rest) {
			out = append(out, text+r)
		}
	}
	switch {
	case expr.Op == syntax.OpLiteral:
		after(lower(expr.Rune...))
	case expr.Op == syntax.OpCharClass && span(expr.Rune) <= 8:
		for i := 0; i < len(expr.Rune); i += 2 {
			for r := expr.Rune[i]; r <= expr.Rune[i+1]; r++ {
				after(lower(r))
			}
		}
	case expr.Op == syntax.OpAlternate:
		for _, sub := range expr.Sub {
			out = append(out, with(sub)...)
		}
	case expr.Op == syntax.OpConcat:
		return with(expr.Sub...)
	case expr.Op == syntax.OpCapture:
		return with(expr.Sub[0])
	case expr.Op == syntax.OpQuest:
		return append(with(expr.Sub[0]), with()...)
	case expr.Op == syntax.OpEmptyMatch, isBegin(expr):
		return with()
	default:
		return []string{""}
	}
	return out
}

// span is how many characters a class has.
func span(ranges []rune) (n int) {
	for i := 0; i < len(ranges); i += 2 {
		n += int(ranges[i+1]-ranges[i]) + 1
	}
	return n
}

// required returns texts of which a text contains one that an expression matches.
func required(expr *syntax.Regexp) []string {
	switch expr.Op {
	case syntax.OpLiteral:
		return []string{lower(expr.Rune...)}
	case syntax.OpCapture, syntax.OpPlus:
		return required(expr.Sub[0])
	case syntax.OpAlternate:
		var out []string
		for _, sub := range expr.Sub {
			out = append(out, required(sub)...)
		}
		return out
	case syntax.OpConcat:
		var best []string
		for _, sub := range expr.Sub {
			if list := required(sub); best == nil || shortest(list) > shortest(best) {
				best = list
			}
		}
		return best
	}
	return []string{""}
}

func shortest(list []string) int {
	return len(slices.MinFunc(list, func(a, b string) int { return len(a) - len(b) }))
}
