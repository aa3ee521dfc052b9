import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import { Bench, type DriverContext } from '../kit/checks/bench.ts';
import { aCatalog } from './catalog.fixture.ts';
import { fleetOf } from './fleet.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { driverOf } from './open.ts';
import { libvirtConfigSchema } from './options.ts';

/** Opens the driver with these hosts and a catalog that sells H100; returns the bench of the shared checks. */
export function openMemoryPlatform(
  hosts: readonly MemoryHost[],
  catalog: Catalog = aCatalog(),
  options: object = {},
) {
  const clock = new VirtualClock();
  const { log, lines } = collectLog();
  const config = libvirtConfigSchema.parse({
    driver: 'libvirt',
    hosts: [{ name: 'h', datacenter: 'fra', public_ip: '192.0.2.1' }],
    images: { 'debian-12': { volume: 'debian.qcow2', user: 'debian' } },
    gpu_types: { H100: ['10de:2330'] },
    ...options,
  });
  const platform = { fleet: fleetOf(hosts), config, catalog, clock, log };
  return { bench: new Bench(benchOf(driverOf(platform), clock, hosts)), lines };
}

function benchOf(driver: PlatformDriver, clock: VirtualClock, hosts: readonly MemoryHost[]): DriverContext {
  return {
    driver,
    machineSpec: (ref) => ({
      ref,
      offerId: 'small',
      datacenter: 'fra',
      hostname: ref,
      image: 'debian-12',
      vcpus: 4,
      memoryGb: 8,
      rootDiskGb: 50,
      gpuCount: 0,
      gpuType: undefined,
      sshKeys: [],
      cloudInit: undefined,
      note: 'a note',
    }),
    volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
    units: undefined,
    wait: (ms) => clock.advance(ms),
    now: () => clock.now(),
    impossible: { image_missing: { image: 'no-such-image' }, capacity: { vcpus: 10_000 } },
    removeReleased: async (ref) =>
      hosts.flatMap(({ domains, files }) => {
        domains.delete(ref);
        const names = [...files.keys()].filter((name) => name.startsWith(`${ref}.`));
        for (const name of names) files.delete(name);
        return names;
      }),
  };
}

/** A machine with a tenant's data on the first of these hosts. */
export async function aMachine(hosts: readonly MemoryHost[] = [new MemoryHost()], ref = 'berth-a') {
  const [host] = hosts as [MemoryHost];
  const { bench } = openMemoryPlatform(hosts);
  await bench.create(ref, { host: host.name });
  const disk = host.files.get(`${ref}.qcow2`);
  if (disk === undefined) throw new Error('it has no disk');
  disk.content = Buffer.from('what the tenant wrote');
  const { driver } = bench;
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  const definition = () => host.virsh(['dumpxml', '--inactive', '--', ref]);
  const written = () => host.files.get(`${ref}.qcow2`)?.content.toString();
  return { host, bench, driver, volumes, definition, written };
}
