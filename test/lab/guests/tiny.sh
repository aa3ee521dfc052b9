#!/bin/bash
# The tiny guest, in seconds: Debian's cloud kernel, busybox, dropbear, and a first boot that reads a NoCloud disk or
# a config drive as cloud-init does, as far as the documents are JSON. usage: tiny.sh OUT.qcow2
set -euo pipefail
out=$(realpath -m "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-tiny.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{packages,root,kernel} "$(dirname "$out")"

kernel_package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
(
  cd "$work/packages"
  apt-get -o APT::Sandbox::User=root download -q busybox-static dropbear-bin libtomcrypt1 libtommath1 zlib1g libcrypt1 \
    libc6 libgmp10 jq libjq1 libonig5 "$kernel_package" >/dev/null
  for package in *.deb; do
    case $package in linux-image*) dpkg-deb -x "$package" "$work/kernel" ;; *) dpkg-deb -x "$package" "$work/root" ;; esac
  done
)
version=$(ls "$work/kernel/lib/modules")
depmod -b "$work/kernel" "$version"

cd "$work/root"
rm -rf usr/share/{doc,man,lintian,locale} {usr/,}lib/x86_64-linux-gnu/{gconv,audit}
mkdir -p proc sys dev run tmp root home mnt sbin bin etc/dropbear etc/acpi/PWRF var/lib/cloud var/log
chmod 1777 tmp
chmod 700 root
for applet in $(bin/busybox --list); do [[ -e bin/$applet ]] || ln -s busybox "bin/$applet"; done
for applet in init poweroff reboot halt acpid; do ln -sf ../bin/busybox "sbin/$applet"; done
# The login shell that cloud-init is given; busybox has none of that name.
printf '#!/bin/sh\nexec /bin/sh "$@"\n' >bin/bash
chmod +x bin/bash
printf 'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/bin/false\n' >etc/passwd
printf '%s:*:19000:0:99999:7:::\n' root daemon >etc/shadow
chmod 600 etc/shadow
printf 'root:x:0:\ndaemon:x:1:\nsudo:x:27:\n' >etc/group
printf '/bin/sh\n/bin/bash\n' >etc/shells
echo 'NAME="tiny"' >etc/os-release
echo tiny >etc/hostname
echo '127.0.0.1 localhost' >etc/hosts
printf '#!/bin/sh\nexec /sbin/poweroff\n' >etc/acpi/PWRF/00000080
chmod +x etc/acpi/PWRF/00000080
cat >etc/inittab <<'EOF'
::sysinit:/etc/first-boot/start.sh
::respawn:/usr/sbin/dropbear -F -E -R
::respawn:/sbin/acpid -f -l /var/log/acpid.log
::ctrlaltdel:/sbin/reboot
::shutdown:/bin/umount -a -r
EOF
cp -r "$here/first-boot" etc/first-boot
chmod +x etc/first-boot/*.sh
chown -R 0:0 .

"$here/initrd.sh" "$work/kernel" "$version" "$work/initrd" virtio_pci virtio_blk virtio_net virtio_rng isofs ata_piix sr_mod evdev button ext4
"$here/disk.sh" "$work/root" "$work/kernel/boot/vmlinuz-$version" "$work/initrd" "$out" 96 \
  'console=ttyS0 quiet net.ifnames=0 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on'
