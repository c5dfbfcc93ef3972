#!/usr/bin/env bash
# Compares metrics and findings of every recorded machine between revision $1 and the exporter $2 with the machines of this checkout.
set -euo pipefail
[ -n "$1" ] || { echo 'make compare BEFORE=REVISION' >&2; exit 2; }
cd "$(dirname "$0")/../.."
old=$(mktemp -d)
trap 'git worktree remove --force "$old/tree" 2>/dev/null || true; rm -rf "$old"' EXIT
git worktree add --quiet --detach "$old/tree" "$1"
(cd "$old/tree" && go build -o "$old/rdma_exporter" ./cmd/rdma_exporter)
go run ./test/compare -before "$old/rdma_exporter,$old/tree/fixtures/sysfs" -after "$2,fixtures/sysfs"
