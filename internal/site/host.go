package site

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// rackPseudonym is the rack of the host of OfHost.
const rackPseudonym = "rack-1"

// OfHost reduces a valid file to one host, under a pseudonym: entries of other hosts and comments are removed. The
// names of the systems at the far end of cables are replaced by system, those of racks by rackPseudonym.
func OfHost(text []byte, hostname, pseudonym string, system func(string) string) ([]byte, error) {
	if _, err := Parse(text); err != nil {
		return nil, err
	}
	root, err := document(text)
	if err != nil || root == nil {
		return nil, err
	}
	for i := 1; i < len(root.Content); i += 2 { // pins, ignore, cabling and others
		list := root.Content[i]
		if key := root.Content[i-1].Value; key == "switches" || key == "peers" {
			list.Content = nil // names of no host, or of others
		}
		list.Content = slices.DeleteFunc(list.Content,
			func(entry *yaml.Node) bool { return !rename(entry, hostname, pseudonym) })
		for _, entry := range list.Content {
			if name := valueOf(entry, "system"); name != nil {
				name.SetString(system(name.Value))
			}
			if rack := valueOf(entry, "rack"); rack != nil {
				rack.SetString(rackPseudonym)
			}
		}
	}
	strip(root)
	out, err := yaml.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("cannot encode YAML: %w", err)
	}
	return out, nil
}

// rename replaces globs that match the host by the pseudonym, and reports whether they match.
func rename(entry *yaml.Node, hostname, pseudonym string) bool {
	patterns := valueOf(valueOf(entry, "match"), "hostname")
	if patterns == nil {
		return true
	}
	var names Globs
	if patterns.Decode(&names) != nil { // valid in a valid file
		return false
	}
	*patterns = yaml.Node{Kind: yaml.ScalarNode, Value: pseudonym}
	return names.allow(hostname, exactly)
}

// valueOf returns the value of a key of a mapping; nil if it is missing.
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

// strip removes comments and anchors, which may have names of the site.
func strip(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment, n.Anchor = "", "", "", ""
	for _, c := range n.Content {
		strip(c)
	}
}
