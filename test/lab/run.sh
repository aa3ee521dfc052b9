#!/bin/bash
# Drivers against the engines that they drive: `npm run test:lab -- [FILE…]`. It installs Debian packages, builds the
# guests that are not there yet, and runs the tests where nothing of them can leave or stay: those of libvirt beside
# those of Incus, since each of them waits much.
set -euo pipefail
cd "$(dirname "$0")/../.."

test/lab/packages.sh
guests=$(realpath -m "${BERTH_LAB_GUESTS:-node_modules/.cache/berth-lab}")
# Builds a guest that is not there, or is older than what builds it.
build() {
  [[ $guests/$2 -nt $1 ]] || { rm -f "$guests/$2" && "$1" "$guests/$2"; }
}

engines=()
for engine in libvirt incus; do
  [[ "$*" == *test/lab/* && "$*" != *test/lab/$engine* ]] || engines+=("$engine")
done
build_guests() {
  case $1 in
    libvirt)
      build test/lab/guests/tiny.sh tiny.qcow2
      build test/lab/guests/cloud-init.sh cloud-init.qcow2
      ;;
    incus) build test/lab/incus/image.sh incus.tar.gz ;;
  esac
}

# The tests of one engine, with those of the arguments that are about it; each has a report of its own.
run() {
  local engine=$1 argument arguments=()
  shift
  for argument; do
    case $argument in
      test/lab/$engine* | -*) ;;
      test/lab/*) continue ;;
    esac
    case $argument in
      --outputFile.json=*.json) argument=${argument%.json}-$engine.json ;;
    esac
    arguments+=("$argument")
  done
  [[ "${arguments[*]}" == *test/lab/* ]] || arguments+=("test/lab/$engine")
  build_guests "$engine"
  # It ends with this script, however that ends.
  exec setpriv --pdeathsig KILL test/lab/in-namespaces.sh env BERTH_LAB_GUESTS="$guests" node_modules/.bin/node node_modules/.bin/vitest run \
    --config vitest.lab.config.ts "${arguments[@]}"
}

started=()
for engine in "${engines[@]}"; do
  run "$engine" "$@" &
  started+=($!)
done
status=0
for each in "${started[@]}"; do wait "$each" || status=$?; done
exit "$status"
