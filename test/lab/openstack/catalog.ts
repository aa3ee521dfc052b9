/** The hosts with the fake hypervisor, each in a zone of its own. */
export const computes = { cn1: 'az1', cn2: 'az2' } as const;
export type ComputeName = keyof typeof computes;

/** The project that Berth has, and its user there. */
export const owner = { project: 'berth', user: 'berth' };

export const networks = {
  /** `bridge` is that of a host, which python/berth_lab/network.py names. */
  tenants: { name: 'tenants', bridge: 'tenants', cidr: '10.88.0.0/24', gateway: '10.88.0.1' },
  outside: { name: 'outside', cidr: '10.89.0.0/24', gateway: '10.89.0.1' },
};
export const image = { name: 'debian-12', login_user: 'debian' };

/** A host has room for eight, four or two of them. */
export const flavors = [
  { id: 'small', name: 'small', vcpus: 1, ram: 256, disk: 1 },
  { id: 'medium', name: 'medium', vcpus: 2, ram: 512, disk: 2 },
  { id: 'large', name: 'large', vcpus: 4, ram: 1024, disk: 4 },
];
