#!/bin/sh
# The first process of a machine: it has its own mounts and its own process numbers. Its disk is a layer over this host's root
# file system. usage: machine.sh DISK ADDRESS PORT VCPUS MEMORY_GB
set -e
disk=$1 root=$1/root
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=/,upperdir=$disk/upper,workdir=$disk/work" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/run/sshd" "$root/mnt"
hostname "$(cat "$root/etc/hostname")" || true
kb=$(($5 * 1000000))
printf 'MemTotal: %s kB\nMemFree: %s kB\nMemAvailable: %s kB\n' $kb $((kb / 2)) $((kb / 2)) >"$root/run/meminfo"
mount --bind "$root/run/meminfo" "$root/proc/meminfo"
last=$(($4 - 1))
[ "$last" -lt "$(nproc)" ] || last=$(($(nproc) - 1))
cd /
exec taskset -c "0-$last" chroot "$root" /usr/sbin/sshd -D -e -o "ListenAddress=$2" -o "Port=$3" -o UsePAM=no \
  -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o PermitRootLogin=prohibit-password \
  -o HostKey=/etc/ssh/ssh_host_ed25519_key -o UseDNS=no -o PidFile=none -o Subsystem='sftp internal-sftp' -f /dev/null
