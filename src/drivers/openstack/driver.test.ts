import { describe } from 'vitest';
import { KEYSTONE } from '../../../simulation/engine/openstack/identity.ts';
import { ADMIN, memoryCloud } from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { describeDriver } from '../kit/driver.suite.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import { openOpenStack } from './open.ts';
import { openstackConfigSchema } from './options.ts';

const size = { vcpus: 2, memoryGb: 2, rootDiskGb: 20, gpuCount: 0, gpuType: undefined };

function setUp(parts: { bootsFromVolume?: boolean; onStop?: 'release' | 'hold'; floating?: boolean } = {}) {
  const memory = memoryCloud();
  const placements = [{ region: 'fra', units: 8 }];
  const machine = { flavor: 'm1.small', ...(parts.bootsFromVolume && { boot_volume: {} }) };
  const offer = {
    ...size,
    id: 'h100',
    machine,
    storageGb: 20,
    placements,
    osOptions: [],
    onStop: parts.onStop ?? 'hold',
  };
  const catalog = { regions: new Map(), offers: new Map([['h100', offer]]) } as unknown as Catalog;
  const options = openstackConfigSchema.parse({
    driver: 'openstack',
    cloud: 'memory',
    network: 'tenants',
    ...(parts.floating && { floating_network: 'public' }),
  });
  const { id, secret } = ADMIN;
  const cloud = {
    authUrl: KEYSTONE,
    auth: { identity: { methods: ['application_credential'], application_credential: { id, secret } } },
    region: undefined,
    interface: 'public',
    ca: undefined,
    verify: true,
    file: 'clouds.yaml',
    isReadableByOthers: false,
  };
  const open = () =>
    openOpenStack(options, { cloud, transport: memory.transport }, {
      catalog,
      clock: { now: () => memory.time.now },
    } as never);
  return { ...memory, open };
}

describe.each([
  ['servers', {}],
  [
    'shelved servers with floating IPs and boot volumes',
    { bootsFromVolume: true, onStop: 'release', floating: true },
  ],
] as const)('an OpenStack cloud in memory with %s', (_what, parts) => {
  describeDriver('the driver', {
    setup: async () => {
      const { time, wait, open } = setUp(parts);
      return {
        driver: open(),
        machineSpec: (ref) => ({ ...machineSpec({ ref, image: 'ubuntu-24.04' }), ...size }),
        volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
        units: undefined,
        wait,
        now: () => time.now,
        reopen: async () => open(),
        impossible: { image_missing: { image: 'no-such-image' } },
      };
    },
    teardown: ({ driver }) => driver.close(),
  });
});
