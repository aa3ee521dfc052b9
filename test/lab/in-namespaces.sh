#!/bin/bash
# Runs a command in namespaces of its own: no way to the outside, no other's processes, no mount that stays. When the
# command ends, or whoever started this dies, the kernel ends every process that is left in them.
# usage: in-namespaces.sh COMMAND [ARGUMENT…]; needs root
set -euo pipefail
# The shell stays, as process 1: it reaps what daemons leave, which the command would not.
exec unshare --net --mount --pid --ipc --fork --mount-proc --kill-child -- \
  bash -c 'ip link set lo up; "$@"; exit $?' in-namespaces "$@"
