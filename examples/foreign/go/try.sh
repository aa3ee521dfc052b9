#!/bin/bash
# Runs the suite against the plain server, each form and each fault, and prints one line for each.
# usage: try.sh [--jobs N] [--out FOLDER] [plain | form:NAME,NAME | fault:NAME]...     (root, Go, sshd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)

one() {
  kind=${1%%:*} name=${1#*:} report=$OUT/${1/:/-}
  [ "$kind" = plain ] || option="--$kind=$name"
  PROVIDER_API_KEY=key-of-one-account,second-key-of-it PROVIDER_OTHER_API_KEY=another-account PROVIDER_USERNAME=market \
    PROVIDER_PASSWORD=place "$OUT/foreign" --port 0 $option >"$report.url" 2>"$report.server" &
  pid=$!
  for _ in $(seq 100); do [ -s "$report.url" ] && break; sleep 0.1; done
  export BERTH_API_KEY=key-of-one-account BERTH_SECOND_API_KEY=second-key-of-it BERTH_OTHER_ACCOUNT_KEY=another-account
  [[ $name != *tokens-only* ]] || { unset BERTH_API_KEY; export BERTH_USERNAME=market BERTH_PASSWORD=place; }
  [[ $name != *https* ]] || ca="--ca-file $(ls -t "${TMPDIR:-/tmp}"/foreign-go-*/ca.pem | head -1)"
  case $name in plain | sold-out-omitted | availability-cached | capacity-leaked | oversold | sold-out-error) race="--race cpu.2=3" ;; esac
  # What is seen only by watching for a minute gets the minute; the other faults do not wait for it.
  case $kind:$name in *:dies-quietly | *:stale-worker | *:cdn-cache | plain* | form*) ;; *) observe="--observe-s ${OBSERVE_S:-20}" ;; esac
  begun=$SECONDS
  timeout 1500 "$root/node_modules/.bin/node" "$root/src/main.ts" conformance "$(head -1 "$report.url")" --level full --yes \
    --poll-interval-ms 500 $race $observe --ready-timeout-s "${READY_S:-60}" --restart-command "kill -HUP $pid; sleep 1" \
    --state-dir "$report.state" --json "$report.json" $ca >"$report.txt" 2>&1
  code=$?
  kill $pid
  wait $pid 2>/dev/null
  ids=$(awk '$1 == "FAIL" || $1 == "WARN" { sub(":", "", $2); printf "%s%s ", $1 == "WARN" ? "warns:" : "", $2 }' "$report.txt")
  case $kind/$code/$ids in fault/1/* | plain/0/* | form/0/*) word=ok ;; fault/*/warns*) word=warn ;; *) word=BAD ;; esac
  first=$(awk '$1 == "FAIL" || $1 == "WARN" { id = $2 } $1 == "actual" { sub(/ *actual */, ""); print id ": " $0; exit }' "$report.txt")
  printf '%-4s %-28s exit %s %4ss %s| %s\n' $word "$1" $code $((SECONDS - begun)) "$ids" "$first" | tee "$report.line"
}

if [ "$1" = --one ]; then one "$2"; exit; fi
jobs=1
export OUT=${TMPDIR:-/tmp}/foreign-tries
while [[ $1 == --* ]]; do
  case $1 in --jobs) jobs=$2 ;; --out) OUT=$2 ;; *) exit 64 ;; esac
  shift 2
done
mkdir -p "$OUT"
(cd "$here" && go build -o "$OUT/foreign" .) || exit
if [ $# = 0 ]; then
  set -- plain $("$OUT/foreign" --list forms | sed s/^/form:/) $("$OUT/foreign" --list faults | sed s/^/fault:/)
fi
printf '%s\n' "$@" | nice -n 10 xargs -P "$jobs" -I{} bash "$0" --one {}
for run in "$@"; do grep -qE "^(ok|warn)" "$OUT/${run/:/-}.line" || bad=1; done
exit ${bad:-0}
