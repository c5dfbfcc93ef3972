#!/bin/bash
# Recreates a directory from files and directories: stage.sh DIRECTORY SOURCE...
set -eu
to=$1
shift
rm -rf "$to"
mkdir -p "$to"
cp -r "$@" "$to"
