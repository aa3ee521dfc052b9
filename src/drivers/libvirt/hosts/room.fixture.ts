import type { Gpu } from '../gpus/gpus.ts';
import type { PciFunction } from '../gpus/pci-functions.ts';
import type { Claim, HostView, Wanted } from './room.ts';

export function aHost(overrides: Partial<HostView> = {}): HostView {
  return {
    name: 'kvm-1',
    datacenter: 'fra',
    group: 'default',
    cordon: undefined,
    fault: undefined,
    problems: [],
    volumes: new Set(),
    capabilities: { uefi: true, kvm: true },
    sellable: { vcpus: 16, memoryMb: 65_536, diskGb: 500 },
    otherDiskGb: 0,
    claims: [],
    gpus: [],
    addresses: undefined,
    ...overrides,
  };
}

export function aClaim(overrides: Partial<Claim> = {}): Claim {
  return {
    ref: 'berth-a',
    state: 'held',
    vcpus: 4,
    memoryMb: 8192,
    diskGb: 50,
    pciFunctions: [],
    ...overrides,
  };
}

export function aWish(overrides: Partial<Wanted> = {}): Wanted {
  return {
    datacenter: 'fra',
    group: 'default',
    vcpus: 4,
    memoryMb: 8192,
    diskGb: 50,
    gpuCount: 0,
    gpuType: undefined,
    ...overrides,
  };
}

export function aGpu(address: string, overrides: Partial<Gpu> = {}, numaNode = 0): Gpu {
  const first: PciFunction = {
    address,
    id: '10de:2330',
    class: '0302',
    driver: 'vfio-pci',
    group: address,
    resetMethods: ['flr'],
    bridge: undefined,
    canResetBus: false,
    answersAs: '10de:2330',
    fatalErrors: 0,
    nonfatalErrors: 0,
    numaNode,
    linkWidth: 16,
  };
  return {
    address,
    type: 'H100',
    functions: [first],
    state: 'free',
    reason: undefined,
    mark: undefined,
    ...overrides,
  };
}
