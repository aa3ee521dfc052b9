#!/bin/sh
# Reads the NoCloud disk, or OpenStack's config drive. The network is set up at each boot, all else once for each instance-id.
dir=/var/lib/cloud
for disk in /dev/vd? /dev/sr?; do
  [ -b "$disk" ] && mount -o ro -t iso9660 "$disk" /mnt 2>/dev/null || continue
  [ -e /mnt/meta-data ] && cp /mnt/* "$dir/"
  latest=/mnt/openstack/latest
  if [ -e "$latest/meta_data.json" ]; then
    jq '{"instance-id": .uuid}' "$latest/meta_data.json" >"$dir/meta-data"
    cp "$latest/user_data" "$dir/user-data" 2>/dev/null
    jq -f /etc/first-boot/network-data.jq "$latest/network_data.json" >"$dir/network-config"
  fi
  umount /mnt
done

card=
for path in /sys/class/net/e*; do card=${path##*/}; done
if [ -n "$card" ]; then
  ip link set "$card" up
  if [ -s "$dir/network-config" ] && [ "$(jq -r '.ethernets[].dhcp4 // false' "$dir/network-config")" = false ]; then
    jq -r '.ethernets[] | "ip addr add \(.addresses[0]|@sh) dev $card", (.routes[]? | "ip route add default via \(.via|@sh)"), (.nameservers.addresses[]? | "echo nameserver \(@sh) >>/run/resolv.conf")' \
      "$dir/network-config" >/run/network.sh
    . /run/network.sh
    cp /run/resolv.conf /etc/resolv.conf
  else
    udhcpc -i "$card" -q -t 8 -T 1 -A 1 -n -S -s /etc/first-boot/dhcp.sh
  fi
fi

[ -s "$dir/meta-data" ] || exit 0
instance=$(jq -r '."instance-id"' "$dir/meta-data")
[ "$(cat "$dir/instance" 2>/dev/null)" = "$instance" ] && exit 0
for part in vendor-data user-data; do
  [ -s "$dir/$part" ] && sed 1d "$dir/$part" | jq -r -f /etc/first-boot/cloud.jq >"/run/$part.sh" && . "/run/$part.sh"
done
echo "$instance" >"$dir/instance"
