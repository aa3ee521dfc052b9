#!/bin/bash
# Sets OpenStack's services up, from the packages beside OUT_FOLDER, and keeps their databases and files there.
# usage: site.sh OUT_FOLDER; needs root
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../../.."
exec test/lab/in-namespaces.sh env BERTH_LAB_GUESTS="$(dirname "$out")" node_modules/.bin/node test/lab/openstack/prepare.ts
