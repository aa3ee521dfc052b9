#!/usr/bin/env bash
# Builds the image of the Dockerfile and uses it: serve, health check, a machine to log into, conformance, marketplace.
# There is no need for Docker: what builds and runs it is installed from Debian's packages where it is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PWD/node_modules/.bin:$PATH"
storage=node_modules/.cache/berth-image

as_root() {
  if ((EUID == 0)); then "$@"; else sudo --preserve-env=PATH "$@"; fi
}

has_programs() {
  command -v buildah && command -v mmdebstrap && command -v ssh && command -v ssh-keygen && PATH="$PATH:/usr/sbin:/sbin" command -v ip
} >/dev/null

if ! has_programs; then
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -q --no-install-recommends buildah mmdebstrap openssh-client iproute2
fi

as_root test/image/build-image.sh "$storage"
# A network and processes of its own: the ports of the image are free in it, and nothing of it outlives this.
as_root unshare --net --pid --fork --kill-child --mount-proc \
  sh -c 'PATH="$PATH:/usr/sbin:/sbin" ip link set lo up && exec node test/image/try-image.ts "$1" berth:test' sh "$storage"
