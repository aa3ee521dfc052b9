#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip addr flush dev "$interface"
ip addr add "$ip/${mask:-24}" dev "$interface"
[ -n "$router" ] && ip route add default via "${router%% *}"
: >/etc/resolv.conf
for server in $dns; do echo "nameserver $server" >>/etc/resolv.conf; done
