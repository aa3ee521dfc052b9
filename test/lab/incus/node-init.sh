#!/usr/bin/env bash
# The first process of a lab node: a host of its own, with its own processes, mounts, network and control groups. It starts
# and kills incusd when standard input says so, and the whole node ends with it: with standard input, or by a signal.
# Usage: unshare --net --mount --pid --fork --kill-child --cgroup --mount-proc node-init.sh DIR
set -euo pipefail
dir=$1
mount --make-rprivate /
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/lock "$dir/state"
chmod 711 "$dir/state"
ip link set lo up
export INCUS_DIR=$dir/state PATH=/usr/libexec/incus:$PATH
incusd=
echo ready

while read -r order; do
  case $order in
    start)
      setsid incusd --group root --logfile "$dir/incusd.log" </dev/null >>"$dir/incusd.out" 2>&1 &
      incusd=$!
      if incusd waitready --timeout=60 >>"$dir/incusd.out" 2>&1; then echo started; else echo failed; fi
      ;;
    kill)
      kill -KILL "$incusd" && { wait "$incusd" || true; } 2>/dev/null
      echo killed
      ;;
    *) echo "what is $order?" ;;
  esac
done
