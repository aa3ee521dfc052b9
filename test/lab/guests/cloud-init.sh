#!/bin/bash
# The real guest: Debian with systemd, OpenSSH and cloud-init as Debian has it, less what only costs time where a guest is
# emulated. About a minute. usage: cloud-init.sh OUT.qcow2
set -euo pipefail
out=$(realpath -m "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-cloud.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root" "$(dirname "$out")"

mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1 | sed 's,/debian.*,,')
cat >"$work/50_lab.cfg" <<'EOF'
datasource_list: [NoCloud, None]
locale: false
apt: {preserve_sources_list: true}
no_ssh_fingerprints: true
ssh: {emit_keys_to_console: false}
ssh_genkeytypes: [ed25519]
system_info: {network: {renderers: [networkd]}}
cloud_init_modules: [bootcmd, write-files, set_hostname, update_hostname, update_etc_hosts, users-groups, ssh]
cloud_config_modules: [runcmd]
cloud_final_modules: [package-update-upgrade-install, write-files-deferred, scripts-user, final-message]
EOF
# Units that do nothing for a guest that lives for minutes.
masked=(apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
  systemd-binfmt.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount
  sys-fs-fuse-connections.mount sys-kernel-config.mount kmod-static-nodes.service systemd-pstore.service
  systemd-timesyncd.service systemd-update-utmp.service getty@tty1.service systemd-networkd-wait-online.service
  cloud-init-hotplugd.socket systemd-hwdb-update.service)

{
  echo "deb $mirror/debian bookworm main"
  echo "deb $mirror/debian-security bookworm-security main"
} | mmdebstrap --variant=minbase --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-confold \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --include=linux-image-cloud-amd64,systemd-sysv,dbus,udev,kmod,openssh-server,cloud-init,iproute2,sudo,e2fsprogs \
  --essential-hook='mkdir -p "$1/etc/initramfs-tools"; echo update_initramfs=no >"$1/etc/initramfs-tools/update-initramfs.conf"' \
  "" "$work/root.tar" - >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
tar -C "$work/root" --numeric-owner --xattrs -xf "$work/root.tar"

cd "$work/root"
cp "$work/50_lab.cfg" etc/cloud/cloud.cfg.d/50_lab.cfg
rm -f etc/cloud/cloud.cfg.d/90_dpkg.cfg etc/ssh/ssh_host_* boot/initrd*
: >etc/machine-id
for unit in "${masked[@]}"; do ln -sf /dev/null "etc/systemd/system/$unit"; done
ln -sf /lib/systemd/system/systemd-networkd.service etc/systemd/system/multi-user.target.wants/systemd-networkd.service
printf '/dev/vda2 / ext4 noatime 0 0\n' >etc/fstab
chroot . python3 -m compileall -q /usr/lib/python3/dist-packages/cloudinit >/dev/null 2>&1 || true

version=$(ls lib/modules)
cp boot/vmlinuz-* "$work/kernel"
"$here/initrd.sh" "$work/root" "$version" "$work/initrd" virtio_pci virtio_blk virtio_net virtio_rng isofs ext4
(cd "lib/modules/$version/kernel" && rm -rf drivers/{gpu,infiniband,net/ethernet,md,scsi,hv} sound fs/{ocfs2,ceph,cifs,nfs,nfsd,gfs2,btrfs,xfs,f2fs,jfs})
depmod -b . "$version"
rm -rf boot/*
"$here/disk.sh" "$work/root" "$work/kernel" "$work/initrd" "$out" 1600 \
  'root=/dev/vda2 rw console=ttyS0 quiet net.ifnames=0 mitigations=off tsc=reliable random.trust_cpu=on systemd.show_status=0'
