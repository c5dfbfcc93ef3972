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

// ofTheProgram are the files whose change a user may notice; tests and what they read are not among them.
var (
	ofTheProgram = regexp.MustCompile(`^(cmd|collector|internal|rules|dashboards)/`)
	ofTests      = regexp.MustCompile(`(_test\.go$|/testdata/|^rules/tests/|^dashboards/gen/|^internal/deptest/)`)
)

// noChangelog in the message of a commit says that no user notices.
const noChangelog = "[no changelog]"

// changedSince asks for a new entry where the program has changed since a commit that is an ancestor of both.
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
	before, _ := parse(old) // in whatever form it was
	if strings.Contains(messages, noChangelog) || log.news(before) {
		return nil
	}
	return fmt.Errorf("the program changes (%s and %d more files), and there is no new entry: add one to [%s], or %s to the message of a commit if no user notices",
		changed[0], len(changed)-1, unreleased, noChangelog)
}

func program(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return !ofTheProgram.MatchString(f) || ofTests.MatchString(f) })
}

// news says whether an entry is there that was not.
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
