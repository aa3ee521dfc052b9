#!/bin/bash
# Makes an initrd that loads the given modules and hands over to the root on the second partition of the first disk.
# usage: initrd.sh TREE_WITH_MODULES KERNEL_VERSION OUT MODULE…
set -euo pipefail
tree=$1 version=$2 out=$3
shift 3

work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-initrd.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,dev,new,modules}
cp /bin/busybox "$work/bin/"
ln -s busybox "$work/bin/sh"

for module in "$@"; do
  { modprobe -d "$tree" -S "$version" --show-depends "$module" 2>/dev/null || true; } | awk '/^insmod/ { print $2 }'
done | awk '!seen[$0]++' | while read -r file; do
  name=$(basename "$file" .xz)
  case $file in *.xz) xz -dc "$file" >"$work/modules/$name" ;; *) cp "$file" "$work/modules/$name" ;; esac
  echo "$name" >>"$work/modules.list"
done

cat >"$work/init" <<'EOF'
#!/bin/busybox sh
busybox=/bin/busybox
$busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
while read -r module; do $busybox insmod "/modules/$module" 2>/dev/null; done </modules.list
n=0
while [ ! -b /dev/vda2 ] && [ $n -lt 200 ]; do $busybox usleep 50000; n=$((n + 1)); done
$busybox mount -t ext4 -o noatime /dev/vda2 /new || exec $busybox sh
$busybox mount -o move /dev /new/dev
exec $busybox switch_root /new /sbin/init
EOF
chmod +x "$work/init"
(cd "$work" && find . | cpio -o -H newc --quiet --owner 0:0) >"$out"
