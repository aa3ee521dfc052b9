#!/bin/bash
# Drivers against the engines that they drive: `npm run test:lab -- [FILE…]`. It installs Debian packages, builds the
# guests that are not there yet, and runs the tests where nothing of them can leave or stay.
set -euo pipefail
cd "$(dirname "$0")/../.."

test/lab/packages.sh
guests=$(realpath -m "${BERTH_LAB_GUESTS:-node_modules/.cache/berth-lab}")
[[ -s $guests/tiny.qcow2 ]] || test/lab/guests/tiny.sh "$guests/tiny.qcow2"
# A folder of libvirt alone does without this one, which takes minutes.
[[ -s $guests/incus.tar.gz || "$*" == *test/lab/libvirt* && "$*" != *test/lab/incus* ]] || test/lab/incus/image.sh "$guests/incus.tar.gz"
exec test/lab/in-namespaces.sh env BERTH_LAB_GUESTS="$guests" node_modules/.bin/node node_modules/.bin/vitest run \
  --config vitest.lab.config.ts "$@"
