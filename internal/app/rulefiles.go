package app

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"rdma_exporter/rules"
)

// ruleFiles are the built-in rule files and those of --alerting.rule-files, as read.
type ruleFiles struct {
	fs.FS                   // built in
	texts map[string][]byte // of --alerting.rule-files, by path
	books runbookURL        // of the alerts
}

// ReadFile is called by the engine.
func (r ruleFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := r.texts[name]; ok {
		return r.books.inRules(text), nil
	}
	text, err := fs.ReadFile(r.FS, name)
	return r.books.inRules(text), err
}

// maxRuleFile limits a rule file.
const maxRuleFile = 4 << 20

// readRules returns all rule files, and their names in the order of evaluation: the built-in ones, each replaced by a file of the same base name
// if there is one, then the additional ones. Their alerts link to runbooks at books.
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
			return r, nil, fmt.Errorf("--alerting.rule-files=%s: no file matches", glob)
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
				return r, nil, fmt.Errorf("--alerting.rule-files: %s and %s have the same base name", names[at], name)
			default:
				names[at] = name
			}
		}
	}
	return r, names, nil
}
