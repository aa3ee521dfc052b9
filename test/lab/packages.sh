#!/bin/bash
# Installs what the lab runs on: Debian's QEMU, libvirt and what builds the guests. Starts nothing.
set -euo pipefail

packages=(
  # The lab itself: namespaces, guests.
  iproute2 util-linux procps busybox-static kmod cpio xz-utils e2fsprogs dosfstools fdisk mtools syslinux syslinux-common
  mmdebstrap jq qemu-utils openssh-client openssh-server
  # libvirt
  qemu-system-x86 qemu-system-data seabios ipxe-qemu libxml2-utils libvirt-daemon-system libvirt-daemon-driver-qemu libvirt-clients
  dnsmasq-base nftables iptables
  # Incus, which Debian 12 has among its backports
  incus-base incus-client btrfs-progs rsync openssl
)

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}
# No service is started: the lab starts its own, in namespaces of its own.
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin /usr/sbin/policy-rc.d
  trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
fi
if ! apt-cache show incus-base >/dev/null 2>&1; then
  printf 'Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg |
    as_root install -m 644 /dev/stdin /etc/apt/sources.list.d/berth-lab-backports.sources
fi
as_root apt-get -o DPkg::Lock::Timeout=600 update -q
as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "${missing[@]}"
