package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// licence is recognised by words unique to its text.
type licence struct {
	id         string // SPDX
	words      []string
	not        string // words of a longer licence that includes it
	permissive bool   // only requires distribution of its text
}

// unknown is the ID of a licence file without a known text.
const unknown = "unknown"

var known = []licence{
	{id: "Apache-2.0", words: []string{"apache license", "version 2.0"}, permissive: true},
	{id: "MIT", words: []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}, permissive: true},
	{id: "BSD-3-Clause", words: []string{"redistribution and use in source and binary forms", "endorse or promote products derived from"}, permissive: true},
	{id: "BSD-2-Clause", words: []string{"redistribution and use in source and binary forms"}, not: "endorse or promote products derived from", permissive: true},
	{id: "ISC", words: []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"}, permissive: true},
	{id: "LicenseRef-NVML-header", words: []string{"hereby granted a nonexclusive, royalty-free license to use this code in individual and commercial software"}, permissive: true},
	{id: "MPL", words: []string{"mozilla public license"}},
	{id: "EPL", words: []string{"eclipse public license"}},
	{id: "CDDL", words: []string{"common development and distribution license"}},
	{id: "GPL", words: []string{"gnu general public license"}},
	{id: "LGPL", words: []string{"gnu lesser general public license"}},
	{id: "AGPL", words: []string{"gnu affero general public license"}},
	{id: "SSPL", words: []string{"server side public license"}},
	{id: "BUSL", words: []string{"business source license"}},
	{id: "CC", words: []string{"creative commons"}},
}

// recognise returns the licences in a text.
func recognise(text string) (ids []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, l := range known {
		has := func(w string) bool { return strings.Contains(text, w) }
		if slices.ContainsFunc(l.words, func(w string) bool { return !has(w) }) || l.not != "" && has(l.not) {
			continue
		}
		ids = append(ids, l.id)
	}
	slices.Sort(ids)
	return ids
}

// permissive returns an error for each module without a known, permissive licence.
func permissive(modules []module) error {
	var errs []error
	for _, m := range modules {
		if len(m.licences()) == 0 {
			errs = append(errs, fmt.Errorf("%s %s has no licence file: take another module", m.path, m.version))
		}
		for _, f := range m.files {
			for _, id := range f.ids {
				if !slices.ContainsFunc(known, func(l licence) bool { return l.id == id && l.permissive }) {
					errs = append(errs, fmt.Errorf("%s %s: %s: licence %s: take another module, or add the licence to licences.go if it is permissive",
						m.path, m.version, f.name, id))
				}
			}
		}
	}
	return errors.Join(errs...)
}
