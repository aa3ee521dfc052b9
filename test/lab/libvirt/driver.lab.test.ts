import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import { guestLogin } from '../../../src/drivers/kit/guest.fixture.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import { openLibvirt } from '../../../src/drivers/libvirt/platform.ts';
import type { Offer } from '../../../src/orchestrator/catalog/catalog.ts';
import type { ObservedMachine, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { collectLog } from '../../support/collect-log.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { findDisk, platformOf } from './platform.ts';

const UNITS = 2;
const MEMORY_GB = 0.1875;
/** What the driver reads of an offer. */
const small: Partial<Offer> = {
  id: 'small',
  machine: {},
  vcpus: 1,
  memoryGb: MEMORY_GB,
  storageGb: 1,
  gpuCount: undefined,
  placements: [{ region: 'lab1', units: UNITS }],
  osOptions: ['tiny-root'],
  onStop: 'release',
};

let host: LabHost;
beforeAll(async () => {
  host = await openLabHost(1);
});
afterAll(() => host?.close());

/** One host, with ports for so many machines; `more` are options of it. */
async function open(more: object = {}): Promise<PlatformDriver> {
  const { hosts, ...platform } = platformOf([host]);
  const network = { mode: 'nat', ports: [30_000, 30_000 + UNITS * 8 - 1] };
  // Most are stopped before they have booted, and hear nothing.
  const hosted = { ...platform, stop_grace_s: 3, hosts: [{ ...hosts[0], network, ...more }] };
  const options = libvirtConfigSchema.parse(hosted);
  const catalog = { regions: new Map(), offers: new Map([['small', small as Offer]]) };
  return openLibvirt(options, { catalog, clock: systemClock, log: collectLog().log });
}

const { sshKeys, guest } = guestLogin();
const run = (machine: ObservedMachine, line: string): Promise<string> =>
  guest.run?.(machine, line) ?? Promise.reject();

describeDriver('a host with libvirt', {
  setup: async () => ({
    driver: await open(),
    machineSpec: (ref) => ({
      ref,
      offerId: 'small',
      datacenter: 'lab1',
      hostname: ref,
      image: 'tiny-root',
      vcpus: 1,
      memoryGb: MEMORY_GB,
      rootDiskGb: 1,
      gpuCount: 0,
      gpuType: undefined,
      sshKeys,
      cloudInit: undefined,
      note: 'a note',
    }),
    volumeSpec: (ref) => ({ ref, datacenter: 'lab1', sizeGb: 0.125, type: undefined, note: 'a note' }),
    units: UNITS,
    wait: (ms) => sleep(ms),
    patienceMs: 120_000,
    guest: {
      ...guest,
      volume: {
        write: async (machine, volume, text) => {
          await run(machine, `${findDisk(volume)}; echo ${text} | dd of=$d bs=512 conv=sync && sync`);
        },
        read: async (machine, volume) => (await run(machine, `${findDisk(volume)}; head -n 1 $d`)).trim(),
      },
    },
    impossible: { image_missing: { image: 'no-such-image' }, capacity: { vcpus: 10_000 } },
    reopen: () => open(),
    openUnreachable: () => open({ uri: 'qemu+unix:///system?socket=/nowhere/libvirt-sock' }),
  }),
  teardown: async ({ driver }) => {
    await driver.close();
    expect(host.contents()).toEqual([]);
  },
  timeoutMs: 240_000,
});
