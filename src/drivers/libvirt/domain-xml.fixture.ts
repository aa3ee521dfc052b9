import type { DomainSpec } from './domain-xml.ts';
import type { MachineMark } from './machine-mark.ts';

export function aMark(overrides: Partial<MachineMark> = {}): MachineMark {
  return {
    ref: 'berth-inst-1',
    createdAt: 1_700_000_000_000,
    note: '{"account":"acct-1"}',
    user: 'debian',
    claim: 'held',
    diskGb: 20,
    gpuCount: 0,
    gpuType: undefined,
    gpus: [],
    ...overrides,
  };
}

export function aDomain(overrides: Partial<DomainSpec> = {}): DomainSpec {
  return {
    name: 'berth-inst-1',
    accelerator: 'tcg',
    vcpus: 2,
    memoryMb: 4096,
    uefi: false,
    kvmCpu: 'host-passthrough',
    rootDiskPath: '/var/lib/libvirt/images/berth-inst-1.qcow2',
    seedPath: '/var/lib/libvirt/images/berth-inst-1.seed',
    network: { network: 'berth' },
    consolePath: '/var/log/libvirt/qemu/berth-inst-1.console',
    hotplugSlots: 4,
    pciFunctions: [],
    mark: aMark(),
    ...overrides,
  };
}

/** A domain with every optional part. */
export const aGpuDomain = (): DomainSpec =>
  aDomain({
    accelerator: 'kvm',
    kvmCpu: 'host-model',
    uefi: true,
    network: { bridge: 'br0' },
    pciFunctions: ['0000:65:00.0', '0000:65:00.1', '0001:ff:1f.7'],
    mark: aMark({
      claim: 'open',
      gpuCount: 2,
      gpuType: 'RTX_4090',
      gpus: ['0000:65:00.0', '0001:ff:1f.7'],
      nat: { hostPort: 20_022, address: '192.168.150.2', bridge: 'virbr-berth', guestPorts: [22, 80] },
      hostKeyFingerprint: 'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU',
      memo: 'restart 7',
    }),
  });
