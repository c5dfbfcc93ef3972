package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// ofTheProgram are files with user-visible effects, without tests and fixtures.
var (
	ofTheProgram = regexp.MustCompile(`^(cmd|collector|internal|rules|dashboards)/`)
	ofTests      = regexp.MustCompile(`(_test\.go$|/testdata/|^rules/tests/|^dashboards/gen/|^internal/deptest/)`)
)

// noChangelog in a commit message marks a change without user-visible effect.
const noChangelog = "[no changelog]"

// changedSince requires a new entry if the program has changed since the merge base.
func changedSince(ctx context.Context, commit string, log changelog) error {
	files, err := git(ctx, "diff", "--name-only", commit+"...HEAD")
	if err != nil {
		return err
	}
	changed := program(strings.Fields(files))
	if len(changed) == 0 {
		return nil
	}
	messages, err := git(ctx, "log", "--format=%B", commit+"..HEAD")
	if err != nil {
		return err
	}
	base, err := git(ctx, "merge-base", commit, "HEAD")
	if err != nil {
		return err
	}
	old, err := git(ctx, "show", strings.TrimSpace(base)+":"+name)
	if err != nil {
		return err
	}
	before, _ := parse(old) // errors in the old version do not matter
	if strings.Contains(messages, noChangelog) || log.news(before) {
		return nil
	}
	return fmt.Errorf("the program changed (%s and %d more files) without a new entry: add one to [%s], or %s to a commit message if there is no user-visible effect",
		changed[0], len(changed)-1, unreleased, noChangelog)
}

func program(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return !ofTheProgram.MatchString(f) || ofTests.MatchString(f) })
}

// news reports whether there is a new entry.
func (log changelog) news(before changelog) bool {
	had := map[entry]bool{}
	for _, s := range before {
		for _, e := range s.entries {
			had[e] = true
		}
	}
	for _, s := range log {
		if slices.ContainsFunc(s.entries, func(e entry) bool { return !had[e] }) {
			return true
		}
	}
	return false
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}
