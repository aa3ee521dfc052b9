#!/bin/sh
# A machine's whole life at a provider of the sandbox, with curl alone. BERTH says how Berth is called; default `npx berth`.
set -eu
ready=$(mktemp)
${BERTH:-npx berth} sandbox --port 0 --providers d --clock virtual --json >"$ready" &
sandbox=$!
trap 'kill $sandbox; wait $sandbox || true; rm -f "$ready"' EXIT
until grep -q origin "$ready"; do kill -0 $sandbox && sleep 0.1; done

# The first value of a field in JSON.
field() { sed -E "s/.*\"$1\":\"([^\"]+)\".*/\1/"; }
base=$(sed -E 's/.*"provider-d":\{"base_url":"([^"]+)".*/\1/' "$ready")
key=$(sed -E 's/.*"provider-d":\{"base_url":"[^"]+","api_key":"([^"]+)".*/\1/' "$ready")
control=$(sed -E 's/.*"control":\{"base_url":"([^"]+)".*/\1/' "$ready")
control_key=$(sed -E 's/.*"control":\{"base_url":"[^"]+","api_key":"([^"]+)".*/\1/' "$ready")

ask() { curl -sS -H "Authorization: Bearer $key" -H 'Content-Type: application/json' "$@"; }
control() {
  curl -sS --fail -o /dev/null -X POST -H "Authorization: Bearer $control_key" -H 'Content-Type: application/json' \
    "$control/$1" -d "$2"
}
advance() { control clock/advance "{\"by\":\"$1\"}"; }
expect() {
  [ "$1" = "$2" ] || { echo "expected $2, got $1" >&2; exit 1; }
  echo "$2"
}

offers=$(ask "$base/availability")
offer=$(echo "$offers" | sed -E 's/\{"configurations":\[\{"id":"([^"]+)".*/\1/')
region=$(echo "$offers" | grep -o '"regions":\["[^"]*' | head -n 1 | sed 's/.*"//')
instance=$(ask "$base/instances" -d "{\"configuration_id\":\"$offer\",\"region\":\"$region\",\"name\":\"demo\",\"ssh_keys\":
  [\"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK demo\"]}")
expect "$(echo "$instance" | field status)" PROVISIONING
id=$(echo "$instance" | sed -E 's/\{"id":"([^"]+)".*/\1/')
advance 60s
expect "$(ask "$base/instances/$id" | field status)" ONLINE

# Once, a machine that lives reads 404: a client that believes it stops paying for what still runs.
control faults "{\"fault\":\"false-404\",\"instance\":\"$id\"}"
expect "$(ask -o /dev/null -w '%{http_code}' "$base/instances/$id")" 404
expect "$(ask "$base/instances/$id" | field status)" ONLINE

ask -o /dev/null -X DELETE "$base/instances/$id"
advance 60s
expect "$(ask -o /dev/null -w '%{http_code}' "$base/instances/$id")" 404
