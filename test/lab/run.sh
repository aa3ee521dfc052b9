#!/bin/bash
# Drivers against the engines that they drive: `test/lab/run.sh [FILE…]`. It installs Debian packages, builds the
# guests that are not there yet, and runs the tests where nothing of them can leave or stay: those of one
# engine beside those of another, since each of them waits much. It fails if any of them does.
set -euo pipefail
cd "$(dirname "$0")/../.."

test/lab/packages.sh
guests=$(realpath -m "${BERTH_LAB_GUESTS:-node_modules/.cache/berth-lab}")
mkdir -p "$guests"
# Builds a guest that is not there, or is older than what builds it; two runs may want the same.
build() {
  (
    flock 9
    [[ $guests/$2 -nt $1 ]] || { rm -rf "$guests/$2" && "$1" "$guests/$2"; }
  ) 9>"$guests/$2.lock"
}

engines=()
for engine in libvirt incus openstack; do
  if [[ "$*" == *test/lab/* ]]; then
    [[ "$*" != *test/lab/$engine* ]] || engines+=("$engine")
  elif [[ $engine != openstack ]]; then
    engines+=("$engine")
  fi
done
build_guests() {
  case $1 in
    libvirt)
      build test/lab/guests/tiny.sh tiny.qcow2
      build test/lab/guests/cloud-init.sh cloud-init.qcow2
      ;;
    incus) build test/lab/incus/image.sh incus.tar.gz ;;
    openstack)
      build test/lab/guests/tiny.sh tiny.qcow2
      build test/lab/openstack/packages.sh openstack
      for part in settings catalog prepare; do
        [[ $guests/openstack-site -nt test/lab/openstack/$part.ts ]] || rm -rf "$guests/openstack-site"
      done
      build test/lab/openstack/site.sh openstack-site
      ;;
  esac
}

if [[ ${1-} == --prepare ]]; then
  for engine in "${engines[@]}"; do build_guests "$engine"; done
  exit
fi

# The tests of one engine, with those of the arguments that are about it; each run has a report of its own.
run() {
  local engine=$1 report=$2 argument arguments=()
  shift 2
  for argument; do
    case $argument in
      test/lab/$engine* | -*) ;;
      test/lab/*) continue ;;
    esac
    case $argument in
      --outputFile.json=*.json) argument=${argument%.json}-$report.json ;;
    esac
    arguments+=("$argument")
  done
  [[ "${arguments[*]}" == *test/lab/* ]] || arguments+=("test/lab/$engine")
  build_guests "$engine"
  # Two lives at once keep two cores busy.
  arguments+=(--maxConcurrency=2)
  # It ends with this script, however that ends.
  exec setpriv --pdeathsig KILL test/lab/in-namespaces.sh env BERTH_LAB_GUESTS="$guests" node_modules/.bin/node node_modules/.bin/vitest run \
    --project lab "${arguments[@]}"
}

# Starts a run beside the others. Each of its lines says whose it is.
pipes=$(mktemp -d)
trap 'rm -rf "$pipes"' EXIT
printers=()
declare -A running
begin() {
  mkfifo "$pipes/$2"
  sed -u "s/^/$2 | /" <"$pipes/$2" &
  printers+=($!)
  run "$@" >"$pipes/$2" 2>&1 &
  running[$!]=$2
}

# One run that failed fails the whole, and the others go on.
status=0
one_ends() {
  local ended
  wait -n -p ended "${!running[@]}" || status=$?
  unset "running[$ended]"
}

if [[ "$*" == *test/lab/* ]]; then
  for engine in "${engines[@]}"; do begin "$engine" "$engine" "$@"; done
else
  # Two at a time: guests that are emulated take two cores.
  begin libvirt libvirt "$@" test/lab/libvirt/{readme,serve,full,interrupted}.lab.test.ts
  begin incus incus "$@"
  one_ends
  begin libvirt libvirt-driver "$@" test/lab/libvirt/{driver,startable}.lab.test.ts
  one_ends
  begin libvirt libvirt-more "$@" test/lab/libvirt/{fleet,behind}.lab.test.ts
fi
while ((${#running[@]} > 0)); do one_ends; done
wait "${printers[@]}"
exit "$status"
