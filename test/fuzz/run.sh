#!/usr/bin/env bash
# Fuzzes every target of the repository, starting with the stored corpus: run.sh TIME [PATTERN]
# TIME is a duration (60s) or a number of executions (3000x); PATTERN selects lines "FOLDER TARGET". All targets run, also after a failure.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
corpus=$(go env GOCACHE)/fuzz/$(go list -m)
mkdir -p "$corpus"
tar -xzf "$here/corpus.tar.gz" -C "$corpus"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# By default Go spends up to a minute to minimize each input with new coverage, and executes nothing else meanwhile.
fuzz() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 100x "./$1" 2>&1 | sed -n '/^fuzz: elapsed: 0s/!p' | tee "$log"; }

# Go reports its own deadline as a failure if it ends between two inputs (golang.org/issue/75804). A failing input is named in the output.
own_deadline() { grep -qx ' *context deadline exceeded' "$log" && ! grep -qE 'Failing input written|panic:|_test.go:' "$log"; }

failed=()
while read -r dir target; do
  echo "$dir $target"
  fuzz "$dir" "$target" "$1" || own_deadline || failed+=("$dir $target")
done < <(grep -r '^func Fuzz' --include='*_test.go' collector internal | sed -E 's|/[^/]*:func (Fuzz[A-Za-z0-9]*).*| \1|' | sort -u | grep -E -- "${2:-.}")
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
