//go:build e2e

package dist

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/test/program"
)

const (
	packaging = "../../packaging/"
	packages  = "test/dist/packages.sh"
)

// TestManPage: no warnings, except mandoc's about the missing date: the page has a version instead.
func TestManPage(t *testing.T) {
	page := packaging + "man/rdma_exporter.1"
	mandoc := program.Installed(t, "mandoc", packages)
	program.Installed(t, "man", packages)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "man --warnings -l "+page+" 2>&1 >/dev/null").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("man: %v\n%s", err, out)
	}
	out, _ = exec.CommandContext(t.Context(), mandoc, "-Tlint", page).Output()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "missing date") {
			t.Error(line)
		}
	}
	text, err := exec.CommandContext(t.Context(), mandoc, "-Tascii", page).Output()
	if err != nil || !strings.Contains(string(text), "rdma_exporter") {
		t.Errorf("mandoc: %v: %.100q", err, text)
	}
}

// completed is a line, and the completions of a shell.
var completed = []struct {
	line string
	has  []string
	not  string
}{
	{"rdma_exporter ch", []string{"check", "check-config"}, "serve"},
	{"rdma_exporter maintenance ", []string{"start", "end", "status"}, "serve"},
	{"rdma_exporter check --s", []string{"--severity", "--strict", "--state.dir"}, "--set"},
	{"rdma_exporter accept --a", []string{"--all"}, "--alerting"},
	{"rdma_exporter accept mlx5_0 --d", []string{"--dry-run"}, "--drain"},
	{"rdma_exporter gpu release --f", []string{"--for"}, "--fabric.port"},
	{"rdma_exporter --alerting.j", []string{"--alerting.job"}, "--alerting.interval"},
	{"rdma_exporter rules --set=", []string{"central", "node"}, "critical"},
}

// shells print the completions of the line $2, with the script $1.
var shells = map[string]struct{ script, run string }{
	"bash": {"bash/rdma_exporter", `
		source "$1"
		compopt() { :; }
		line=${2//=/ = }; read -ra COMP_WORDS <<<"$line"
		[[ $line != *' ' ]] || [[ $line == *'= ' ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_rdma_exporter rdma_exporter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
		printf '%s\n' "${COMPREPLY[@]}"`},
	"fish": {"fish/rdma_exporter.fish", `
		function rdma_exporter; end
		source $argv[1]
		complete -C $argv[2]`},
	// A separate terminal; ^X lists.
	"zsh": {"zsh/_rdma_exporter", `
		zmodload zsh/zpty
		zpty z zsh -f -i
		zpty -w z "PS1=; fpath=(${1:h} \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=10000; stty columns 300; zle -C l list-choices _main_complete; bindkey '^X' l; echo READ''Y"
		zpty -r z out '*READY*'
		zpty -n -w z "$2"$'\x18'
		for i in {1..100}; do
			sleep 0.1; zpty -r -t z part && out+=$part
			[[ ${out##*READY} != *$'\e[J'*$'\e[A'* ]] || break # a list, and back to the line
		done
		print -r -- "${out##*READY}"`},
}

// control is a terminal control sequence.
var control = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// TestCompletions: each shell reads its script and offers completions.
func TestCompletions(t *testing.T) {
	for shell, s := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			program.Installed(t, shell, packages)
			script := packaging + "completions/" + s.script
			if out, err := exec.CommandContext(t.Context(), shell, "-n", script).CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%v: %s", err, out)
			}
			for _, c := range completed {
				args := []string{"-c", s.run, shell, script, c.line}
				if shell == "fish" { // fish has no $0
					args = append(args[:2:2], args[3:]...)
				}
				out, err := exec.CommandContext(t.Context(), shell, args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v: %s", c.line, err, out)
				}
				out = control.ReplaceAll(out, nil)
				offers := regexp.MustCompile(`[\w.-]+`).FindAllString(strings.ReplaceAll(string(out), c.line, " "), -1)
				has := func(word string) bool {
					for _, o := range offers {
						if o == word {
							return true
						}
					}
					return false
				}
				for _, w := range c.has {
					if !has(w) {
						t.Errorf("%q: %s is missing: %q", c.line, w, out)
					}
				}
				if has(c.not) {
					t.Errorf("%q: %s is no part of it: %q", c.line, c.not, out)
				}
			}
		})
	}
}
