import { FENCE } from './guard.ts';

/**
 * Berth's commands on a host besides libvirt, as a POSIX `sh` program. It is sent with each call, so nothing is
 * installed. Arguments: a command, the root of the file system (empty, except in tests), the state folder, and the
 * command's own. Output: lines of tab-separated fields.
 *
 * - `facts [FOLDER]`: the folder's file system, clock, IOMMU, whether the state folder is writable, and whether
 *   virsh or flock is missing. Removes fences older than a day.
 * - `domains`: the names of libvirt's domains, stored or running; fails if it may not read them.
 * - `neighbours`: MAC and IPv4 addresses of the host's neighbour table.
 * - `exists PATH…`: the paths that exist.
 * - `machines PATH…`: the paths that exist, with rw or ro of their mount and its free bytes; the missing ones whose folder exists; each
 *   network card with its bridge, if any; the domains whose QEMU process a signal has stopped.
 * - `gpus`: each PCI function in a GPU's slot or group or on its bus, and the marks.
 * - `network`: whether the host forwards packets, and its IPv4 addresses.
 * - `processes UUID`: the QEMU processes of the domain, also those that libvirt does not know any more.
 * - `writer KEY [TEXT]`: the mark of the writer, after TEXT has replaced it; an empty TEXT removes it.
 * - `test-kvm SECONDS`: exits with QEMU's status on KVM, 67 if its guest counted to 100 million and 137 if it did not in time.
 * - `fenced RESOURCE FENCE COMMAND …`: runs another command; exits with 80 if a higher fence was seen for the
 *   resource.
 * - `mark ADDRESS REF NONCE`: marks the GPU for the machine; exits with 3 if it has another mark.
 * - `reset ADDRESS TOKEN FILE…`, `clear ADDRESS TOKEN`, `quarantine ADDRESS TOKEN REASON`: exit with 3 unless the GPU
 *   has the mark TOKEN.
 */
export const HOST_SCRIPT = String.raw`
${FENCE}
set -u
export LC_ALL=C
command=$1 root=$2 state=$2$3
shift 3
tab=$(printf '\t')
say() { line=$1; shift; for field; do line=$line$tab$field; done; printf '%s\n' "$line"; }
# Each leaves what it found in $value: a process for each file would make the reading of a host's GPUs slow.
first() {
  value=
  [ -r "$1" ] && IFS= read -r value 2>/dev/null < "$1"
  case $value in *"$tab"*) value=$(printf '%s' "$value" | tr '\t' ' ') ;; esac
}
target() { value=$(readlink "$1" 2>/dev/null); value=${'$'}{value##*/}; }
total() {
  value=
  [ -r "$1" ] || return 0
  while read -r key count; do case $key in TOTAL*) value=$count ;; esac; done 2>/dev/null < "$1"
}

# The mount of a path goes to $mount, and rw or ro to $mode. Of several mounts at one place the last one counts.
mount_of() {
  at=$(readlink -f "$root$1")/ mount= mode=
  at=${'$'}{at#"$root"}
  while read -r _ point _ options _; do
    case $point in *\\*) point=$(printf %b "$point") ;; esac
    case $at in "${'$'}{point%/}"/*) [ ${'$'}{#point} -ge ${'$'}{#mount} ] && mount=$point mode=${'$'}{options%%,*} ;; esac
  done 2>/dev/null < "$root/proc/mounts"
}

facts() {
  [ -d "$root${'$'}{1:-/nowhere}" ] && {
    mount_of "$1"
    say filesystem "$mode" "$mount" $(stat -f -c "%S %b %a" "$root$1")
  }
  say clock "$(date +%s%3N)"
  for group in "$root"/sys/kernel/iommu_groups/*; do [ -d "$group" ] && { say iommu on; break; }; done
  [ -d "$root/sys/bus/pci/drivers/vfio-pci" ] && say vfio loaded
  above=$state
  while [ ! -e "$above" ]; do above=$(dirname "$above"); done
  [ -w "$above" ] && say state writable
  for tool in virsh flock; do command -v $tool >/dev/null || say missing "$tool"; done
  [ -d "$state/fences" ] && find "$state/fences" -type f -mmin +1440 -exec rm -f {} + 2>/dev/null
  return 0
}

domains() {
  for folder in "$root/etc/libvirt/qemu" "$root/run/libvirt/qemu"; do
    [ -r "$folder" ] || exit 1
    for file in "$folder"/*.xml; do
      [ -e "$file" ] || continue
      value=${'$'}{file##*/}
      say domain "${'$'}{value%.xml}"
    done
  done
}

neighbours() {
  while read -r address _ flags mac _; do
    case $flags in 0x2|0x6) say neighbour "$mac" "$address" ;; esac
  done < "$root/proc/net/arp"
  return 0
}

network() {
  first "$root/proc/sys/net/ipv4/ip_forward"
  say forward "$value"
  # Each address is on the line before that.
  sed -n "/32 host LOCAL/{x;s/.*-- /address$tab/p;x;};h" "$root/proc/net/fib_trie" 2>/dev/null | sort -u
}

cards() {
  for card in "$root"/sys/class/net/*; do
    target "$card/master"
    say card "${'$'}{card##*/}" "$value"
  done
}

halted() {
  for file in "$root"/run/libvirt/qemu/*.pid; do
    first "$file"
    first "$root/proc/${'$'}{value:-none}/stat"
    value=${'$'}{value##*) }
    case $value in [Tt]*) value=${'$'}{file##*/}; say halted "${'$'}{value%.pid}" ;; esac
  done
}

function_of() {
  at=$root/sys/bus/pci/devices/$1
  for key in vendor device class numa_node reset_method current_link_width; do
    first "$at/$key"
    say pci "$1" $key "$value"
  done
  target "$at/driver"; say pci "$1" driver "$value"
  target "$at/iommu_group"; say pci "$1" group "$value"
  total "$at/aer_dev_fatal"; say pci "$1" fatal "$value"
  total "$at/aer_dev_nonfatal"; say pci "$1" nonfatal "$value"
  say pci "$1" config "$(od -An -v -tx1 -N 4 "$at/config" 2>/dev/null | tr -d ' \n')"
  bridge=$(readlink "$at" 2>/dev/null)
  bridge=${'$'}{bridge%/*}
  bridge=${'$'}{bridge##*/}
  case $bridge in *[!0-9a-f:.]*) bridge= ;; esac
  say pci "$1" bridge "$bridge"
  [ -n "$bridge" ] && [ -e "$root/sys/bus/pci/devices/$bridge/reset_subordinate" ] && say pci "$1" bus_reset yes
  return 0
}

gpus() {
  cd "$root/sys/bus/pci/devices" 2>/dev/null || return 0
  seen=' '
  for address in *; do
    first "$address/class"
    case $value in 0x03*|0x12*) ;; *) continue ;; esac
    slot=${'$'}{address%%.*}
    for near in "$slot".* "$address"/iommu_group/devices/* "$address"/../????:??:??.?; do
      near=${'$'}{near##*/}
      [ -e "$near" ] || continue
      case $seen in *" $near "*) continue ;; esac
      seen="$seen$near "
      function_of "$near"
    done
  done
  for mark in "$state"/gpus/*; do [ -f "$mark" ] && { first "$mark"; say mark "${'$'}{mark##*/}" "$value"; }; done
  return 0
}

test_kvm() {
  rom=$(mktemp) || exit 1
  trap 'rm -f "$rom"' EXIT
  {
    head -c 65280 /dev/zero
    printf '\372\146\271\000\341\365\005\146\111\165\374\260\041\272\001\005\356\364\353\375'
    head -c 220 /dev/zero
    printf '\351\015\377'
    head -c 13 /dev/zero
  } > "$rom"
  timeout -s KILL "$1" qemu-system-x86_64 -accel kvm -cpu host -machine q35 -m 16 -nodefaults -no-user-config \
    -display none -no-reboot -device isa-debug-exit,iobase=0x501,iosize=2 -bios "$rom" < /dev/null
}

# The state folder is changed by one call at a time, and a mark only by whoever knows what it says.
lock() { mkdir -p "$state/gpus" && exec 9> "$state/lock" && flock -w 10 9 || exit 1; }
write_mark() { printf '%s\n' "$2" > "$state/gpus/.new" && sync "$state/gpus/.new" && mv "$state/gpus/.new" "$state/gpus/$1" || exit 1; }
refuse_unless() { first "$state/gpus/$1"; now=$value; [ "$now" = "$2" ] || { say mark "$1" "$now"; exit 3; }; }

if [ "$command" = fenced ]; then
  fence "$state/fences" "$1" "$2"
  command=$3
  shift 3
fi
case $command in
  domains|gpus|neighbours|network) "$command" ;;
  facts) facts "${'$'}{1-}" ;;
  exists) for path; do [ -e "$root$path" ] && say exists "$path"; done; exit 0 ;;
  machines)
    cards
    halted
    for path; do
      if [ -e "$root$path" ]; then
        [ "${'$'}{path%/*}" = "${'$'}{folder-}" ] || {
          folder=${'$'}{path%/*} free=
          mount_of "$folder"
          free=$(stat -f -c '%a * %S' "$root$folder") && free=$(($free))
        }
        say exists "$path" "$mode" "$free"
      elif [ -d "$root${'$'}{path%/*}" ]; then
        say missing "$path"
      fi
    done ;;
  processes)
    for file in $(grep -lsxzF -e "$1" "$root"/proc/[0-9]*/cmdline); do
      value=${'$'}{file%/cmdline}
      grep -qsxzF -e -uuid "$file" && say process "${'$'}{value##*/}"
    done
    exit 0 ;;
  test-kvm) test_kvm "$1" ;;
  writer)
    file=$state/writers/$1
    if [ $# -gt 1 ]; then
      mkdir -p "$state/writers" && printf '%s\n' "$2" > "$file.$$" && mv "$file.$$" "$file" || exit 1
      [ -n "$2" ] || rm -f "$file"
    fi
    first "$file"
    say writer "$value" ;;
  mark)
    lock
    first "$state/gpus/$1"
    now=$value
    case $now in ''|"dirty $2 "*) ;; *) say mark "$1" "$now"; exit 3 ;; esac
    write_mark "$1" "dirty $2 $3" ;;
  reset)
    lock
    refuse_unless "$1" "$2"
    shift 2
    for file; do printf 1 > "$root/sys/bus/pci/devices/$file" || exit 4; done ;;
  clear) lock; refuse_unless "$1" "$2"; rm -f "$state/gpus/$1" ;;
  quarantine) lock; refuse_unless "$1" "$2"; write_mark "$1" "quarantined $3" ;;
  *) exit 2 ;;
esac
`;
