#!/bin/bash
# usage: test/bare-path.sh COMMAND…  Runs it with a PATH that holds only the commands of test/essential-commands.txt, as a fresh
# machine has them: a test that needs another program is red here, whatever is installed.
set -euo pipefail
bin=$(mktemp -d)
chmod 755 "$bin"
trap 'rm -rf "$bin"' EXIT
while read -r name; do
  if path=$(type -P "$name"); then ln -s "$path" "$bin/$name"; fi
done < <(grep -v '^#' "$(dirname "$0")/essential-commands.txt")
PATH=$bin "$@"
