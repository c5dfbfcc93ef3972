#!/bin/bash
# Recreates a folder from files and folders: stage.sh FOLDER SOURCE...
set -eu
to=$1
shift
rm -rf "$to"
mkdir -p "$to"
cp -r "$@" "$to"
