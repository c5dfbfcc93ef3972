//go:build !race

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestModulesOfTheProgram: each has a licence that is known and permissive, and the page is current.
func TestModulesOfTheProgram(t *testing.T) {
	t.Chdir("../..")
	if err := run(t.Context(), build{runtime.GOARCH, true}, "", "docs/dependencies.md", true); err != nil {
		t.Error(err)
	}
}

// TestFlavours: modules of the cgo build are not listed for the others.
func TestFlavours(t *testing.T) {
	const nvml = "github.com/NVIDIA/go-nvml"
	for _, b := range []build{{"amd64", true}, {"arm64", true}, {"amd64", false}, {"arm64", false}} {
		modules, err := b.modules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(modules, func(m module) bool { return m.path == nvml })
		if (i >= 0) != b.cgo {
			t.Errorf("%+v: go-nvml at %d", b, i)
		}
		if i >= 0 && !strings.Contains(string(noticesText(modules[i:i+1])), "U.S. Government End Users") {
			t.Errorf("%+v: the notice that nvml.h asks for is missing", b)
		}
	}
}

func TestRecognise(t *testing.T) {
	const bsd = "Redistribution and use in source and\n  binary forms, with or without modification"
	for text, want := range map[string][]string{
		"Apache License\n Version 2.0, January 2004":                                                       {"Apache-2.0"},
		"The MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy": {"MIT"},
		bsd: {"BSD-2-Clause"},
		bsd + " Neither the name may be used to endorse or promote products derived from this": {"BSD-3-Clause"},
		"GNU GENERAL PUBLIC LICENSE": {"GPL"},
		"Mozilla Public License Version 2.0, instead of the Apache License, Version 2.0": {"Apache-2.0", "MPL"},
		"All rights reserved.": nil,
	} {
		if got := recognise(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPermissive(t *testing.T) {
	with := func(path string, ids ...string) module {
		return module{path: path, version: "v1.0.0", files: []file{{name: "LICENSE", ids: ids}, {name: "NOTICE"}}}
	}
	if err := permissive([]module{with("a", "MIT"), with("b", "Apache-2.0", "BSD-3-Clause")}); err != nil {
		t.Error(err)
	}
	for want, m := range map[string]module{
		"c v1.0.0: LICENSE: licence GPL":     with("c", "GPL", "MIT"),
		"d v1.0.0: LICENSE: licence unknown": with("d", unknown),
		"e v1.0.0 has no licence file":       with("e"),
	} {
		if err := permissive([]module{m}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestFiles: licences and notices of a folder and those above it, up to the module; an unknown licence is none of the
// known ones.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "internal", "theirs")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"LICENSE.txt": "Apache License Version 2.0\r\n", "NOTICE": "thanks", "license.go": "package x",
		"README.md": "GNU General Public License", "internal/theirs/COPYING": "do as you like",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var m module
	for range 2 {
		if err := m.add(below, root); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, f := range m.files {
		got = append(got, f.name+"="+strings.Join(f.ids, "+"))
	}
	slices.Sort(got)
	if want := []string{"LICENSE.txt=Apache-2.0", "NOTICE=", "internal/theirs/COPYING=unknown"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDirectOf(t *testing.T) {
	name := filepath.Join(t.TempDir(), "go.mod")
	for text, want := range map[string]string{
		"require (\n\ta v1.0.0 // why\n\tb v1.0.0 // indirect\n)\n": "",
		"require (\n\ta v1.0.0\n\tb v1.0.0 // why\n)\n":             "a has no purpose",
		"require (\n\tb v1.0.0 // indirect\n)\n":                    "no direct dependency",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := directOf(name)
		if want == "" && (err != nil || len(got) != 1 || got[0].purpose != "why") ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
}
