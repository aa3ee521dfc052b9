#!/bin/sh
# The tiny guest's boot: file systems, then what the NoCloud disk asks for.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs run /run
ln -sf /proc/self/mounts /etc/mtab
hostname -F /etc/hostname
ip link set lo up
/etc/first-boot/cloud.sh >/var/log/first-boot.log 2>&1
[ -e /etc/dropbear/dropbear_ed25519_host_key ] ||
  dropbearkey -t ed25519 -f /etc/dropbear/dropbear_ed25519_host_key >/dev/null 2>&1
echo "tiny is up after $(cut -d' ' -f1 /proc/uptime) s" >/dev/console
