package site

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// OfHost reduces a valid file to what it says of one host, which it calls by a pseudonym: entries for other hosts go, and so do
// comments. What it says of this host stays the same, the systems that its cables end at have the names that system gives them.
func OfHost(text []byte, hostname, pseudonym string, system func(string) string) ([]byte, error) {
	if _, err := Parse(text); err != nil {
		return nil, err
	}
	root, err := document(text)
	if err != nil || root == nil {
		return nil, err
	}
	for i := 1; i < len(root.Content); i += 2 { // pins, ignore and cabling
		list := root.Content[i]
		list.Content = slices.DeleteFunc(list.Content, func(entry *yaml.Node) bool { return !rename(entry, hostname, pseudonym) })
		for _, entry := range list.Content {
			if name := valueOf(entry, "system"); name != nil {
				name.SetString(system(name.Value))
			}
		}
	}
	strip(root)
	out, err := yaml.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("cannot write it again: %w", err)
	}
	return out, nil
}

// rename puts the pseudonym in the place of globs that match the host; false: they do not.
func rename(entry *yaml.Node, hostname, pseudonym string) bool {
	globs := valueOf(valueOf(entry, "match"), "hostname")
	if globs == nil {
		return true
	}
	m := (&parser{}).globs(globs, "hostname")
	*globs = yaml.Node{Kind: yaml.ScalarNode, Value: pseudonym}
	return m.allow(hostname, exactly)
}

// valueOf is the value of a key of a mapping, nil if it is not there.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// strip removes comments and anchors, which are the operator's own words.
func strip(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment, n.Anchor = "", "", "", ""
	for _, c := range n.Content {
		strip(c)
	}
}
