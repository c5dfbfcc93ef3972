package app

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"rdma_exporter/rules"
)

// ruleFiles are the rules in the binary with the operator's among them, as they were when they were read.
type ruleFiles struct {
	fs.FS                   // in the binary
	texts map[string][]byte // the operator's, by path
	books runbookURL        // where alerts link to
}

// ReadFile is what the engine reads rules by.
func (r ruleFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := r.texts[name]; ok {
		return r.books.inRules(text), nil
	}
	text, err := fs.ReadFile(r.FS, name)
	return r.books.inRules(text), err
}

// maxRuleFile bounds a file of rules.
const maxRuleFile = 4 << 20

// readRules gives all rule files, and their names in the order of evaluation: those in the binary, each or the operator's of the same
// base name in its place, then the operator's others. Their alerts link to runbooks at books.
func readRules(globs []string, books runbookURL) (ruleFiles, []string, error) {
	fsys, names, err := rules.Node()
	if err != nil {
		return ruleFiles{}, nil, err
	}
	r := ruleFiles{FS: fsys, texts: map[string][]byte{}, books: books}
	for _, glob := range globs {
		found, err := filepath.Glob(glob)
		if err != nil {
			return r, nil, fmt.Errorf("--alerting.rule-files=%s: %w", glob, err)
		}
		if len(found) == 0 {
			return r, nil, fmt.Errorf("--alerting.rule-files=%s: no file matches: leave it out where there are none", glob)
		}
		for _, name := range found {
			if _, again := r.texts[name]; again {
				continue
			}
			if r.texts[name], err = readSmall(name, maxRuleFile); err != nil {
				return r, nil, fmt.Errorf("--alerting.rule-files=%s: %s: %w", glob, name, err)
			}
			at := slices.IndexFunc(names, func(n string) bool { return path.Base(n) == filepath.Base(name) })
			switch {
			case at < 0:
				names = append(names, name)
			case r.texts[names[at]] != nil:
				return r, nil, fmt.Errorf("--alerting.rule-files: %s and %s have the same name", names[at], name)
			default:
				names[at] = name
			}
		}
	}
	return r, names, nil
}
