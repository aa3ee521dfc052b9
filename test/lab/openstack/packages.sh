#!/bin/bash
# Unpacks Debian's OpenStack, MariaDB and RabbitMQ into a folder, with what they depend on and the machine lacks. Nothing is
# installed, so no package's script runs: that takes a fifth of the time. usage: packages.sh OUT_FOLDER
set -euo pipefail
out=$(realpath -m "$1")

# What they depend on is unpacked too.
roots=(
  python3-keystone python3-glance python3-placement python3-neutron python3-nova python3-cinder python3-libvirt
  mariadb-server-core mariadb-client-core rabbitmq-server uwsgi-core uwsgi-plugin-python3 genisoimage qemu-utils
)
# The services' programs and pipelines: their own dependencies are for operators.
services=(
  glance-common glance-api neutron-common nova-common nova-api nova-conductor nova-scheduler nova-compute
  cinder-common cinder-api cinder-scheduler cinder-volume
)
# Large, and only for what the lab does not configure: back ends of Ceph, S3 and others, documentation, type checks.
unused='^(python3-mypy|mypy|python3-typed-ast|python3-boto3|python3-botocore|python3-s3transfer|python3-sphinx|sphinx-common|libjs-.*|librgw2|libcephfs2|python3-ceph.*|python3-rgw|fonts-.*|docutils-common|python3-docutils|python3-grpcio|python3-etcd3.*|ieee-data|open-iscsi|sudo)$'

work=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-openstack.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages" "$work/root"
apt-get -s -o Debug::NoLocking=1 --no-install-recommends install "${roots[@]}" | awk '/^Inst/ { print $2 }' | grep -vE "$unused" >"$work/names"
printf '%s\n' "${services[@]}" >>"$work/names"
(cd "$work/packages" && sort -u "$work/names" | xargs apt-get -o APT::Sandbox::User=root download -q >/dev/null)
find "$work/packages" -name '*.deb' -print0 | xargs -0 -P 2 -I {} dpkg-deb --extract {} "$work/root"

cd "$work/root"
for folder in bin sbin lib; do
  if [[ -d $folder ]]; then cp -al "$folder/." "usr/$folder/"; fi
done
# Most of their files are their own tests.
cp etc/cinder/resource_filters.json usr/share/cinder-common/
rm -rf usr/share/{doc,man,locale,lintian,perl*,bash-completion,javascript} usr/lib/python3/dist-packages/*/tests
rm -rf "$out"
mkdir -p "$out"
mv usr "$out/usr"
