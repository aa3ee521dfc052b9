import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import { libvirt as driver } from '../../../src/drivers/libvirt/driver.ts';
import { openLibvirt } from '../../../src/drivers/libvirt/open.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import type { ObservedMachine, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import { contextOf, type LabMachine, run, settingOf, UNITS } from '../driver-context.ts';
import { IMAGES, type LabHost, openLabHost } from './lab-host.ts';
import { findDisk, platformOf } from './platform.ts';

const machine: LabMachine = { datacenter: 'lab1', image: 'tiny-root', vcpus: 1, memoryGb: 0.1875 };

let host: LabHost;
beforeAll(async () => {
  host = await openLabHost(1);
});
afterAll(() => host?.close());

/** One host, with ports for so many machines; `more` are options of it. */
async function open(more: object = {}): Promise<PlatformDriver> {
  const { hosts, ...platform } = platformOf([host]);
  const network = { mode: 'nat', ports: [30_000, 30_000 + UNITS * 8 - 1] };
  // Most are stopped before they have booted, and do not react to the power button.
  const hosted = { ...platform, stop_grace_s: 3, hosts: [{ ...hosts[0], network, ...more }] };
  return openLibvirt(libvirtConfigSchema.parse(hosted), settingOf(machine));
}

const volume = {
  write: async (at: ObservedMachine, name: string, text: string) => {
    await run(at, `${findDisk(name)}; echo ${text} | dd of=$d bs=512 conv=sync && sync`);
  },
  read: async (at: ObservedMachine, name: string) =>
    (await run(at, `${findDisk(name)}; head -n 1 $d`)).trim(),
};

/** As the operator does who has it now: it starts without Berth's ports and without its mark. */
async function removeReleased(driver: PlatformDriver, ref: string): Promise<string[]> {
  expect(host.virsh('metadata', ref, 'urn:berth:machine:1')).toMatch(
    new RegExp(`<(\\w+:)?released .*ref=.${ref}`),
  );
  host.virsh('start', ref);
  expect(await driver.list()).toMatchObject({ items: [], copies: [], leftovers: [] });
  expect(host.run('nft', 'list', 'tables')).not.toMatch(/berth_\d/);
  host.virsh('destroy', ref);
  host.virsh('undefine', ref);
  const files = host
    .run('ls', IMAGES)
    .split('\n')
    .filter((name) => name.startsWith(`${ref}.`));
  host.virsh('pool-refresh', 'berth');
  for (const name of files) host.virsh('vol-delete', '--pool', 'berth', name);
  return files.filter((name) => name.endsWith('.qcow2'));
}

it('runs on the versions that docs/drivers.md names', () => {
  const [, libvirt] = /daemon: (\S+)/.exec(host.virsh('version', '--daemon')) ?? [];
  const [, qemu] = /hypervisor: QEMU (\d+\.\d+)/.exec(host.virsh('version')) ?? [];
  expect(driver.about.provedOn).toContain(`libvirt ${libvirt} and QEMU ${qemu} `);
});

describeDriver('a host with libvirt', {
  setup: async () => {
    const driver = await open();
    return contextOf(machine, volume, {
      driver,
      reopen: () => open(),
      removeReleased: (ref) => removeReleased(driver, ref),
      openUnreachable: () => open({ uri: 'qemu+unix:///system?socket=/nowhere/libvirt-sock' }),
    });
  },
  teardown: async ({ driver }) => {
    await driver.close();
    expect(host.contents()).toEqual([]);
  },
  timeoutMs: 900_000,
});
