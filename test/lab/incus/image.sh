#!/usr/bin/env bash
# Builds a system-container image for Incus from Debian packages alone: systemd, sshd, sudo and cloud-init, with the seed
# templates that the images of images.linuxcontainers.org/…/cloud have. Usage: image.sh OUT.tar.gz
set -euo pipefail
out=$(realpath -m "$1")
suite=bookworm
work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-incus-image.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/image/rootfs" "$work/image/templates" "$(dirname "$out")"

mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
echo "deb ${mirror:-http://deb.debian.org/debian} $suite main" |
  mmdebstrap --variant=minbase --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --include=systemd-sysv,udev,dbus,iproute2,openssh-server,cloud-init,sudo \
    "" "$work/root.tar" - >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    exit 1
  }
root=$work/image/rootfs
tar -C "$root" --numeric-owner -xf "$work/root.tar" --exclude='./dev/*'

: >"$root/etc/machine-id"
rm -f "$root"/etc/ssh/ssh_host_*
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
# What only real hardware, or a machine that lives for months, has a use for.
# cloud-init-local would hold up the network for seconds, to read a configuration of it that is always the same.
for unit in cloud-init-local.service systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
  e2scrub_all.timer fstrim.timer systemd-timesyncd.service cloud-init-hotplugd.socket console-getty.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
printf '[Match]\nName=eth0\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/eth0.network"
# What cloud-init would write, and restart sshd for after it has answered already.
echo 'PasswordAuthentication no' >"$root/etc/ssh/sshd_config.d/50-cloud-init.conf"
cat >"$root/etc/cloud/cloud.cfg.d/90-lab.cfg" <<'CONFIG'
datasource_list: [NoCloud]
ssh_genkeytypes: [ed25519]
apt: {preserve_sources_list: true}
locale: false
network: {config: disabled}
CONFIG

cat >"$work/image/metadata.yaml" <<METADATA
architecture: $(uname -m)
creation_date: $(date +%s)
properties: {description: Debian $suite for the lab, os: Debian, release: $suite, variant: cloud}
templates:
  /var/lib/cloud/seed/nocloud-net/meta-data: {when: [create, copy], template: meta-data.tpl}
  /var/lib/cloud/seed/nocloud-net/user-data: {when: [create, copy], template: user-data.tpl, properties: {default: "#cloud-config\n{}\n"}}
  /var/lib/cloud/seed/nocloud-net/vendor-data: {when: [create, copy], template: vendor-data.tpl, properties: {default: "#cloud-config\n{}\n"}}
  /var/lib/cloud/seed/nocloud-net/network-config: {when: [create, copy], template: network-config.tpl}
  /etc/hostname: {when: [create, copy], template: hostname.tpl}
METADATA
cat >"$work/image/templates/meta-data.tpl" <<'TEMPLATE'
instance-id: {{ container.name }}
local-hostname: {{ container.name }}
{{ config_get("user.meta-data", "") }}
TEMPLATE
printf '%s' '{{ config_get("cloud-init.user-data", properties.default) }}' >"$work/image/templates/user-data.tpl"
printf '%s' '{{ config_get("cloud-init.vendor-data", properties.default) }}' >"$work/image/templates/vendor-data.tpl"
cat >"$work/image/templates/network-config.tpl" <<'TEMPLATE'
{% if config_get("cloud-init.network-config", "") == "" %}version: 2
ethernets: {eth0: {dhcp4: true}}
{% else %}{{ config_get("cloud-init.network-config", "") }}{% endif %}
TEMPLATE
printf '{{ container.name }}\n' >"$work/image/templates/hostname.tpl"

tar -C "$work/image" --numeric-owner -cf - metadata.yaml templates rootfs | gzip -1 >"$out.part"
mv "$out.part" "$out"
