#!/usr/bin/env bash
# A small provider orchestrator as a shell script, with socat and jq, written from the contract's text alone; it shares no
# code with Berth. socat runs this script once for each connection; what it knows is in files. Its machines are OpenSSH
# servers. It cannot resume a stopped machine, which the contract allows: start is 409.
#
#   PROVIDER_API_KEY=… orchestrator.sh [--port N] [--fault time-without-zone|unknown-id-is-400]
#
# prints {"base_url": …} once it listens; SIGTERM ends it and its machines.
#
#   time-without-zone   created_at and updated_at do not say that they are UTC
#   unknown-id-is-400   an instance that does not exist is 400 and not 404
set -uo pipefail
export LC_ALL=C

OFFERS='[
  {"id": "cpu-8", "name": "8 vCPUs", "instance_type": "DEDICATED", "vcpus": 8, "memory_gb": 32, "storage_gb": 100,
   "price_per_hour": 0.2, "regions": ["nl-ams", "se-sto"], "os_options": ["debian-12"], "supports_cloud_init": false, "units": 3},
  {"id": "rtx-6000", "name": "RTX 6000", "instance_type": "DEDICATED", "vcpus": 16, "memory_gb": 64, "storage_gb": 400,
   "gpu_count": 1, "gpu_type": "RTX6000", "gpu_memory_gb": 48, "price_per_hour": 1.1, "regions": ["nl-ams"],
   "os_options": ["debian-12"], "supports_cloud_init": false, "units": 0}
]'

# -- what it knows: $DIR/instances/ID/record.json, and beside it what belongs to the machine

now() {
  if [[ $FAULT == time-without-zone ]]; then date -u '+%F %T'; else date -u +%FT%T.%3NZ; fi
}

# The status is also in a file of its own, which is read without jq.
status_of() { echo "$(<"$DIR/instances/$1/status")"; }

# Changes the record of an instance: change ID FILTER [jq's options]
change() {
  local record=$DIR/instances/$1/record.json filter=$2
  shift 2
  jq -c --arg now "$(now)" "$@" "$filter | .updated_at = \$now" "$record" >"$record.new" && mv "$record.new" "$record"
  jq -r .status "$record" >"${record%/*}/status"
}

move() { change "$1" '.status = $status' --arg status "$2"; }

all_records() {
  find "$DIR/instances" -name record.json -exec cat {} + | jq -cs 'sort_by(.created_at)'
}

offers() {
  all_records | jq -c --argjson offers "$OFFERS" '
    map(select(.status != "DESTROYED").configuration_id) as $held
    | [$offers[] | .id as $id | .available = (.units > ([$held[] | select(. == $id)] | length)) | del(.units)]'
}

# Runs a step of an instance in a session of its own, one at a time for each: later ID STEP
later() {
  setsid "$SELF" --step "$2" "$1" 7>"$DIR/instances/$1/turn" 8>&- </dev/null >/dev/null 2>>"$DIR/log" &
}

# In a step: changes the record while no request is answered.
settle() {
  exec 8>"$DIR/lock"
  flock 8
  "$@"
  exec 8>&-
}

# -- machines

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

boot() {
  local machine=$DIR/instances/$1 port pid
  # A machine takes its time to boot.
  sleep 3
  mkdir "$machine/home"
  ssh-keygen -q -t ed25519 -N '' -f "$machine/host_key" </dev/null
  printf '#!/bin/sh\ncd "%s" && exec sh -c "${SSH_ORIGINAL_COMMAND:-sh}"\n' "$machine/home" >"$machine/login"
  chmod 755 "$machine/login"
  while :; do
    port=$((20000 + RANDOM % 12000))
    setsid /usr/sbin/sshd -D -e -f /dev/null -o Port=$port -o ListenAddress=127.0.0.1 -o HostKey="$machine/host_key" \
      -o AuthorizedKeysFile="$machine/keys" -o ForceCommand="$machine/login" -o SetEnv=HOME="$machine/home" -o StrictModes=no -o PidFile=none \
      -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no 2>"$machine/sshd.log" 7>&- &
    pid=$!
    # It says that it listens before it accepts: somebody else may have the port.
    until grep -q '^Server listening' "$machine/sshd.log"; do
      kill -0 $pid 2>/dev/null || continue 2
      sleep 0.05
    done
    break
  done
  printf '%s %s\n' "$pid" "$port" >"$machine/process"
  settle become_online "$1" "$port"
}

become_online() {
  [[ $(status_of "$1") == PROVISIONING ]] || return 0
  change "$1" '. + {status: "ONLINE", public_ip: "127.0.0.1", ssh_port: $port, ssh_username: $user}' \
    --argjson port "$2" --arg user "$(id -un)"
}

# Returns once nothing of the machine runs.
power_off() {
  local pid port
  read -r pid port 2>/dev/null <"$DIR/instances/$1/process" || return 0
  kill -TERM -- "-$pid" 2>/dev/null
  while answers "$port"; do sleep 0.05; done
  rm "$DIR/instances/$1/process"
}

halt() {
  power_off "$1"
  settle become_stopped "$1"
}

become_stopped() { [[ $(status_of "$1") != STOPPING ]] || move "$1" STOPPED; }

destroy() {
  power_off "$1"
  rm -rf "$DIR/instances/$1/home" "$DIR/instances/$1"/{host_key,host_key.pub,keys,login,sshd.log}
  settle move "$1" DESTROYED
}

# -- requests: the answer is in $STATUS and $BODY

refuse() {
  STATUS=$1 BODY=$(jq -cn --arg code "$2" --arg message "$3" '{error: {code: $code, message: $message}}')
}

shown() { STATUS=$1 BODY=$(<"$DIR/instances/$2/record.json"); }

WRONG='
  def check(holds; message): if holds then empty else message end;
  if type != "object" then "The body is no object." else
    . as $body | first($offers[] | select(.id == $body.configuration_id)) // null | . as $offer | $body
    | if $offer == null then "configuration_id names no offer." else first(
        check($body.region as $region | any($offer.regions[]; . == $region); "The offer is not sold in that region."),
        check((.ssh_keys | type) == "array" and (.ssh_keys | length) > 0 and all(.ssh_keys[]; type == "string"); "ssh_keys has at least one key."),
        check((.name // "") | type == "string"; "name is a text."),
        check((.operating_system_image // "debian-12") == "debian-12"; "There is no such image."),
        check((.root_disk_size_gb // 100) | type == "number"; "root_disk_size_gb is a number."),
        check(.cloud_init == null; "The offer does not support cloud_init."),
        check((.volume_ids // []) == []; "There are no volumes here."),
        "") end
  end'

create() {
  local body wrong id machine key
  if ! [[ $TYPE =~ ^application/json[[:space:]]*(\;.*)?$ ]]; then
    refuse 400 invalid_request 'The body has to be application/json.'
    return
  fi
  if ! body=$(jq -ces 'if length == 1 then .[0] else error end' <<<"$TEXT" 2>/dev/null); then
    refuse 400 invalid_json 'The body is no JSON.'
    return
  fi
  wrong=$(jq -r --argjson offers "$OFFERS" "$WRONG" <<<"$body")
  while [[ -z $wrong ]] && IFS= read -r key; do
    ssh-keygen -l -f /dev/stdin <<<"$key" >/dev/null 2>&1 || wrong='ssh_keys has a text that is no public key.'
  done < <(jq -r '.ssh_keys[]?' <<<"$body" 2>/dev/null)
  if [[ -n $wrong ]]; then
    refuse 400 invalid_request "$wrong"
    return
  fi
  if ! offers | jq -e --argjson body "$body" 'any(.[]; .id == $body.configuration_id and .available)' >/dev/null; then
    refuse 409 capacity_unavailable 'There is no capacity for this offer now.'
    return
  fi
  id=$(</proc/sys/kernel/random/uuid) machine=$DIR/instances/$id
  mkdir "$machine"
  jq -r '.ssh_keys[]' <<<"$body" >"$machine/keys"
  jq -c --arg id "$id" --arg now "$(now)" '{id: $id, configuration_id, region, status: "PROVISIONING", image: "debian-12"}
    + (if .name == null then {} else {name} end) + {created_at: $now, updated_at: $now}' <<<"$body" >"$machine/record.json"
  echo PROVISIONING >"$machine/status"
  shown 201 "$id"
  later "$id" boot
}

of_instance() {
  local id=$1 action=$2 status
  if ! [[ $id =~ ^[0-9a-f-]{36}$ && -e $DIR/instances/$id && $(status_of "$id") != DESTROYED ]]; then
    if [[ $FAULT == unknown-id-is-400 && "$METHOD $action" == 'GET ' && ! -e $DIR/instances/$id ]]; then
      refuse 400 invalid_id 'There is no such instance.'
    else
      refuse 404 not_found 'There is no such instance.'
    fi
    return
  fi
  status=$(status_of "$id")
  case "$METHOD $action" in
    'GET ') ;;
    'DELETE ')
      if [[ $status != DESTROYING ]]; then
        move "$id" DESTROYING
        later "$id" destroy
      fi
      ;;
    'POST stop')
      if [[ $status != ONLINE ]]; then
        refuse 409 invalid_state "The instance is $status and cannot be stopped."
        return
      fi
      move "$id" STOPPING
      later "$id" halt
      ;;
    'POST start')
      refuse 409 resume_unsupported "The instance stays $status: this platform cannot start what was stopped."
      return
      ;;
    *)
      refuse 404 not_found 'There is no such endpoint.'
      return
      ;;
  esac
  shown 200 "$id"
}

# The value of a field of the query, or nothing.
query() {
  local pair
  for pair in ${QUERY//&/ }; do
    [[ $pair == "$1="* ]] || continue
    pair=${pair#*=}
    printf '%b' "${pair//%/\\x}"
  done
}

list_offers() {
  STATUS=200 BODY=$(offers | jq -c --arg region "$(query region)" --arg type "$(query instance_type)" \
    "{configurations: map(select($1) | select(\$type == \"\" or .instance_type == \$type))}")
}

route() {
  local base resource id action more
  if [[ $AUTHORIZATION != "Bearer $PROVIDER_API_KEY" ]]; then
    refuse 401 unauthorized 'The credential is missing or wrong.'
    return
  fi
  IFS=/ read -r _ base resource id action more <<<"$ROUTE"
  case "$METHOD $base/$resource${id:+/*}${more:+/more}" in
    'GET v1/configurations') list_offers true ;;
    'GET v1/availability') list_offers '.available and ($region == "" or any(.regions[]; . == $region))' ;;
    'GET v1/instances')
      STATUS=200 BODY=$(all_records | jq -c --arg region "$(query region)" \
        '{instances: map(select(.status != "DESTROYED" and ($region == "" or .region == $region)))}')
      ;;
    'POST v1/instances') create ;;
    *' v1/instances/*') of_instance "$id" "$action" ;;
    *) refuse 404 not_found 'There is no such endpoint.' ;;
  esac
}

# Reads one request, answers it, and ends.
handle() {
  local line name length=0
  METHOD='' AUTHORIZATION='' TYPE='' TEXT='' QUERY=''
  read -r METHOD ROUTE _ || return
  while IFS= read -r line && line=${line%$'\r'} && [[ -n $line ]]; do
    name=${line%%:*} line=${line#*:} line=${line#"${line%%[![:space:]]*}"}
    case "${name,,}" in
      authorization) AUTHORIZATION=$line ;;
      content-type) TYPE=$line ;;
      content-length) length=$line ;;
    esac
  done
  [[ $ROUTE != *\?* ]] || QUERY=${ROUTE#*\?}
  ROUTE=${ROUTE%%\?*}
  [[ $length =~ ^[0-9]+$ ]] || length=0
  ((length == 0)) || TEXT=$(head -c "$length" | tr -d '\0')
  exec 8>"$DIR/lock"
  flock 8
  route
  exec 8>&-
  printf 'HTTP/1.1 %s -\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
    "$STATUS" "${#BODY}" "$BODY"
}

SELF=$(realpath "$0")
case ${1:-} in
  --handle)
    handle
    exit
    ;;
  --step)
    flock 7
    sleep 0.3
    "$2" "$3"
    exit
    ;;
esac

port=0
export FAULT='' PROVIDER_API_KEY
while (($# > 0)); do
  case $1 in
    --port) port=$2 ;;
    --fault) FAULT=$2 ;;
    *) exit 2 ;;
  esac
  shift 2
done
[[ $FAULT =~ ^(|time-without-zone|unknown-id-is-400)$ ]] || exit 2
: "${PROVIDER_API_KEY:?}"
((EUID != 0)) || mkdir -p /run/sshd
DIR=$(mktemp -d)
export DIR
mkdir "$DIR/instances"
socat -d -d "TCP-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork,backlog=128" "EXEC:\"$SELF\" --handle" 2>"$DIR/socat.log" &
server=$!

finish() {
  kill $server
  for machine in "$DIR"/instances/*/; do
    [[ -e $machine ]] || continue
    flock "$machine/turn" true
    power_off "$(basename "$machine")"
  done
  rm -rf "$DIR"
  exit 0
}
trap finish TERM INT

until grep -q 'listening on' "$DIR/socat.log"; do
  kill -0 $server || exit 1
  sleep 0.05
done
sed -n 's/.*listening on AF=2 127.0.0.1:\([0-9]*\).*/{"base_url": "http:\/\/127.0.0.1:\1\/v1"}/p' "$DIR/socat.log"
wait $server
