package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file, with its remedy.
type Problem struct {
	Line   int // from 1; 0: the file as a whole
	Reason string
}

// Problems are what Parse refuses a file for, by line. They are an error.
type Problems []Problem

// maxProblems is what a person reads; a file of another kind has one on each line.
const maxProblems = 20

func (p Problems) Error() string { return p.text("") }

// In is the error with the file's name before each line: FILE:LINE: REASON.
func (p Problems) In(file string) error { return &inFile{p, file} }

type inFile struct {
	problems Problems
	file     string
}

func (e *inFile) Error() string { return e.problems.text(e.file) }

func (e *inFile) Unwrap() error { return e.problems }

// text is a line for each problem.
func (p Problems) text(file string) string {
	var out []string
	for _, x := range p[:min(len(p), maxProblems)] {
		out = append(out, x.place(file)+x.Reason)
	}
	if more := len(p) - maxProblems; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "\n")
}

func (p Problem) place(file string) string {
	switch {
	case file == "" && p.Line == 0:
		return ""
	case file == "":
		return fmt.Sprintf("line %d: ", p.Line)
	case p.Line == 0:
		return file + ": "
	default:
		return fmt.Sprintf("%s:%d: ", file, p.Line)
	}
}

func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return p
}
