package main

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
)

// templateVariables are declared by Prometheus ahead of the template of an annotation.
const templateVariables = `{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}`

// readable is the template of an annotation without its definitions and queries: labels as capitals, values as N,
// alternatives separated by bars, optional text in brackets, "..." after what is repeated.
func readable(text string) (string, error) {
	tree := parse.New("summary")
	tree.Mode = parse.SkipFuncCheck
	tree, err := tree.Parse(templateVariables+text, "", "", map[string]*parse.Tree{})
	if err != nil {
		return "", fmt.Errorf("parse template: %w", err)
	}
	return strings.Join(strings.Fields(printed(tree.Root)), " "), nil
}

func printed(list *parse.ListNode) string {
	if list == nil {
		return ""
	}
	var b strings.Builder
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			b.Write(n.Text)
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				b.WriteString(placeholder(n.Pipe))
			}
		case *parse.IfNode:
			b.WriteString(branches(&n.BranchNode))
		case *parse.WithNode:
			b.WriteString(branches(&n.BranchNode))
		case *parse.RangeNode:
			b.WriteString(printed(n.List) + " ...")
		}
	}
	return b.String()
}

// branches shows the alternatives of an if or a with.
func branches(n *parse.BranchNode) string {
	var all []string
	optional := false
	for {
		if s := printed(n.List); strings.TrimSpace(s) == "" {
			optional = true
		} else if !slices.Contains(all, s) {
			all = append(all, s)
		}
		if next := elseIf(n.ElseList); next != nil {
			n = next
			continue
		}
		if s := printed(n.ElseList); strings.TrimSpace(s) == "" {
			optional = true
		} else if !slices.Contains(all, s) {
			all = append(all, s)
		}
		break
	}
	switch s := strings.Join(all, "|"); {
	case s == "" || optional && strings.Trim(s, ",; ") == "": // between the items of a list
		return ""
	case optional && bracketed(s):
		return s
	case optional:
		return "[" + s + "]"
	case len(all) == 1 || !strings.Contains(s, " "):
		return s
	default:
		return "{" + s + "}"
	}
}

// bracketed reports whether one pair of brackets holds the whole text.
func bracketed(s string) bool {
	depth := 0
	for i, c := range s {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			return i > 0 && i+1 == len(s)
		}
	}
	return false
}

// elseIf is the branch that an else consists of.
func elseIf(list *parse.ListNode) *parse.BranchNode {
	if list == nil || len(list.Nodes) != 1 {
		return nil
	}
	switch n := list.Nodes[0].(type) {
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	}
	return nil
}

// placeholder names what a pipeline prints: a label of the alert or of a query, or a number.
func placeholder(p *parse.PipeNode) string {
	last := p.Cmds[len(p.Cmds)-1]
	if id, ok := last.Args[0].(*parse.IdentifierNode); ok && id.Ident == "label" && len(last.Args) > 1 {
		if s, ok := last.Args[1].(*parse.StringNode); ok {
			return capitals(s.Text)
		}
	}
	for _, c := range p.Cmds {
		for _, a := range c.Args {
			var fields []string
			switch a := a.(type) {
			case *parse.VariableNode:
				fields = a.Ident
			case *parse.FieldNode:
				fields = a.Ident
			case *parse.PipeNode:
				return placeholder(a)
			case *parse.StringNode:
				if len(p.Cmds) == 1 && len(c.Args) == 1 {
					return a.Text
				}
			}
			if len(fields) > 1 && (fields[0] == "$labels" || fields[0] == "Labels") {
				return capitals(fields[1])
			}
		}
	}
	return "N"
}

func capitals(label string) string {
	switch label {
	case "instance":
		return "HOST"
	case "gpu":
		return "N"
	}
	return strings.ToUpper(label)
}
