import type { LabHost } from './lab-host.ts';

export const region = 'eu-lab';
export const offer = { configuration_id: 'tiny', region };

const tiny = {
  id: 'tiny',
  name: 'tiny',
  instance_type: 'DEDICATED',
  vcpus: 1,
  memory_gb: 0.1875,
  storage_gb: 1,
  price_per_hour: 0.01,
  os_options: ['tiny', 'tiny-root'],
  supports_cloud_init: true,
  online_within_s: 600,
  machine: { ports: [8080] },
};

/** The tiny guest, with a user or as root, so many of them; and Debian with its own cloud-init, whose image a test adds. */
export const catalogOf = (units: number) => ({
  regions: {
    [region]: {
      name: 'Lab',
      country_code: 'DE',
      datacenter: 'lab1',
      volume_types: [{ name: 'local', price_per_gb_hour: 0.0001, min_size_gb: 1, max_size_gb: 10 }],
    },
  },
  offers: [
    { ...tiny, capacity: { [region]: units } },
    {
      ...tiny,
      id: 'debian',
      name: 'Debian',
      vcpus: 2,
      memory_gb: 0.5,
      storage_gb: 2,
      price_per_hour: 0.02,
      os_options: ['debian'],
      capacity: { [region]: 1 },
    },
  ],
});

/** The hosts as an operator writes them, each promising more than it has: its guests are small. */
export function platformOf(hosts: readonly LabHost[]) {
  return {
    driver: 'libvirt',
    hosts: hosts.map(({ uri, address }, index) => ({
      name: `kvm-${index + 1}`,
      uri,
      datacenter: 'lab1',
      public_ip: address,
      reserve: { memory_gb: 0, disk_gb: 0 },
      overcommit: { vcpus: 16, disk: 20 },
    })),
    images: {
      tiny: { volume: 'tiny.qcow2', user: 'debian' },
      'tiny-root': { volume: 'tiny.qcow2', user: 'root' },
      debian: { volume: 'cloud-init.qcow2', user: 'debian' },
    },
    accelerator: 'tcg',
    stop_grace_s: 20,
  };
}

/**
 * A line of shell that puts the device of a volume into `$d`, by its serial: the tiny guest has no udev that would make a
 * name of it. A guest sees a new disk in its own time.
 */
export function findDisk(volume: string, seconds = 30): string {
  const find = `for b in /sys/block/vd*; do [ "$(cat $b/serial)" != ${volume.slice(0, 20)} ] || d=/dev/\${b##*/}; done`;
  return `n=0; d=; while ${find}; [ -z "$d" ] && [ $n -lt ${2 * seconds} ]; do n=$((n + 1)); sleep 0.5; done`;
}
