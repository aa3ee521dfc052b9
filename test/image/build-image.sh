#!/usr/bin/env bash
# Builds the Dockerfile without a Docker engine and without a registry: the base image that it names is made of Debian's
# packages, and of the Node and npm that are here. It is tagged berth:test. Needs root, buildah and mmdebstrap.
# usage: build-image.sh [--base] STORAGE    a folder for the images; the base image in it is used again. --base makes that alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The project's own Node, and not an older one of the system.
PATH="$PWD/node_modules/.bin:$PATH"
only_base=
if [[ $1 == --base ]]; then only_base=1 && shift; fi
storage=$(realpath -m "$1")
mkdir -p "$storage"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$storage/images" --runroot "$storage/run" "$@"; }

make_base() {
  local container root
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,libatomic1 bookworm "$work/base.tar"
  container=$(buildah from scratch)
  root=$(buildah mount "$container")
  tar -xf "$work/base.tar" -C "$root"
  install -D "$(node -p process.execPath)" "$root/usr/local/bin/node"
  mkdir -p "$root/usr/local/lib/node_modules"
  cp -r "$(dirname "$(dirname "$(realpath "$(command -v npm)")")")" "$root/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  chroot "$root" groupadd --gid 1000 node
  chroot "$root" useradd --uid 1000 --gid node --create-home node
  buildah umount "$container" >/dev/null
  buildah commit --quiet --rm "$container" "$base" >/dev/null
}

base=docker.io/library/$(sed -n 's/^FROM \([^ ]*\)$/\1/p' Dockerfile)
buildah images --quiet "$base" >/dev/null 2>&1 || make_base >&2
[[ -z $only_base ]] || exit 0

# npm in the build asks the registry that npm here is configured for, and trusts what is trusted here.
{
  cat "$(npm config get userconfig)" 2>/dev/null || true
  printf '\ncafile=/etc/ssl/certs/ca-certificates.crt\n'
} >"$work/npmrc"
buildah build --pull-never --network host --format docker --tag berth:test \
  --volume "$work/npmrc:/root/.npmrc:ro" --volume /etc/ssl/certs:/etc/ssl/certs:ro . >&2
