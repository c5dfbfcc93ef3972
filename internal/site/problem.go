package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/words"
)

// Problem is an error in a file, with its remedy.
type Problem struct {
	Line   int // from 1; 0: the file as a whole
	Reason string
}

// Problems are all errors of a file, by line.
type Problems []Problem

// maxProblems limits the output: a file of another kind has an error on each line.
const maxProblems = 20

func (p Problems) Error() string { return p.text("") }

// In is the error with the file name: FILE:LINE: REASON.
func (p Problems) In(file string) error { return &inFile{p, file} }

type inFile struct {
	problems Problems
	file     string
}

func (e *inFile) Error() string { return e.problems.text(e.file) }

func (e *inFile) Unwrap() error { return e.problems }

// text returns a line for each problem.
func (p Problems) text(file string) string {
	out := words.Map(p[:min(len(p), maxProblems)], func(x Problem) string { return x.place(file) + x.Reason })
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
