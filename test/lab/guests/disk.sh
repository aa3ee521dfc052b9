#!/bin/bash
# Makes a disk that a BIOS boots: a FAT partition with syslinux, kernel and initrd, and an ext4 root.
# usage: disk.sh ROOT KERNEL INITRD OUT.qcow2 ROOT_MB "KERNEL ARGUMENTS"
set -euo pipefail
root=$1 kernel=$2 initrd=$3 out=$4 root_mb=$5 arguments=$6

work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-disk.XXXXXX")
trap 'rm -rf "$work"' EXIT
boot_mb=48
disk=$work/disk.raw

truncate -s $((boot_mb + root_mb + 2))M "$disk"
sfdisk -q "$disk" <<EOF
label: dos
start=1MiB, size=${boot_mb}MiB, type=c, bootable
start=$((boot_mb + 1))MiB, type=83
EOF
dd if=/usr/lib/syslinux/mbr/mbr.bin of="$disk" conv=notrunc status=none

truncate -s ${boot_mb}M "$work/boot.raw"
mkfs.vfat -n BOOT "$work/boot.raw" >/dev/null
printf 'DEFAULT linux\nPROMPT 0\nTIMEOUT 0\nLABEL linux\nLINUX vmlinuz\nINITRD initrd\nAPPEND %s\n' "$arguments" >"$work/syslinux.cfg"
mcopy -i "$work/boot.raw" "$kernel" ::vmlinuz
mcopy -i "$work/boot.raw" "$initrd" ::initrd
mcopy -i "$work/boot.raw" "$work/syslinux.cfg" ::syslinux.cfg
# The boot record says where on the disk the partition begins.
dd if="$work/boot.raw" of="$disk" bs=1M seek=1 conv=notrunc,sparse status=none
syslinux --install --offset $((1024 * 1024)) "$disk"

mkfs.ext4 -q -F -L root -O ^has_journal -m 0 -d "$root" "$work/root.raw" "${root_mb}M"
dd if="$work/root.raw" of="$disk" bs=1M seek=$((boot_mb + 1)) conv=notrunc,sparse status=none
qemu-img convert -O qcow2 "$disk" "$out"
