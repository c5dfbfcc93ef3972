package main

import (
	"fmt"
	"io/fs"
	"strings"
)

// marked returns a hand-written page with the parts between <!-- gen:NAME --> and <!-- end --> replaced.
func marked(docs fs.FS, name string, parts map[string]func() (string, error)) (page, error) {
	b, err := fs.ReadFile(docs, name)
	if err != nil {
		return page{}, fmt.Errorf("page with generated parts: %w", err)
	}
	text := string(b)
	for part, write := range parts {
		begin, end := "<!-- gen:"+part+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(text, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			return page{}, fmt.Errorf("%s: %s… %s missing", name, strings.TrimSpace(begin), end)
		}
		s, err := write()
		if err != nil {
			return page{}, fmt.Errorf("%s: %s: %w", name, part, err)
		}
		text = before + begin + strings.TrimRight(s, "\n") + "\n" + end + after
	}
	return page{name, []byte(text)}, nil
}
