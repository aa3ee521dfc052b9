import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Diagnosis } from '../../../src/drivers/kit/driver-definition.ts';
import { guestLogin } from '../../../src/drivers/kit/guest.fixture.ts';
import { importImage } from '../../../src/drivers/libvirt/images/import-image.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import { openLibvirt } from '../../../src/drivers/libvirt/platform.ts';
import type { Catalog, Offer } from '../../../src/orchestrator/catalog/catalog.ts';
import type {
  MachineSpec,
  ObservedMachine,
  PlatformDriver,
} from '../../../src/orchestrator/model/platform-driver.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { collectLog } from '../../support/collect-log.ts';
import { GUESTS, type LabHost, openLabHost } from './lab-host.ts';
import { platformOf } from './platform.ts';

const TINY = join(GUESTS, 'tiny.qcow2');
const IMPORTED = { volume: 'imported.qcow2', user: 'root' };

let host: LabHost;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-lab-import-'));
  host = await openLabHost(1);
});
afterAll(async () => {
  await host?.close();
  rmSync(folder, { recursive: true });
});

const offer: Partial<Offer> = { id: 'small', machine: {}, gpuCount: undefined, osOptions: ['imported'] };
const catalog = {
  regions: new Map(),
  offers: new Map([['small', { ...offer, placements: [] }]]),
} as unknown as Catalog;
const config = () => libvirtConfigSchema.parse({ ...platformOf([host]), images: { imported: IMPORTED } });

async function importFile(file: string, replace = false): Promise<Diagnosis | undefined> {
  const request = { name: 'imported', file, host: undefined, replace };
  const findings: Diagnosis[] = [];
  for await (const finding of importImage(config(), { catalog }, request)) findings.push(finding);
  return findings.at(-1);
}

const { sshKeys, guest } = guestLogin();
const spec: MachineSpec = {
  ref: 'berth-imported-1',
  offerId: 'small',
  datacenter: 'lab1',
  hostname: 'imported',
  image: 'imported',
  vcpus: 1,
  memoryGb: 0.1875,
  rootDiskGb: 1,
  gpuCount: 0,
  gpuType: undefined,
  sshKeys,
  cloudInit: undefined,
  note: 'a note',
};

async function create(driver: PlatformDriver): Promise<ObservedMachine> {
  for (let cookie: string | null = null; ; ) {
    const step = await driver.create(spec, cookie);
    if (step.outcome === 'done') return step.value;
    if (step.outcome === 'failed') throw new Error(step.detail);
    cookie = step.cookie;
    await sleep(step.pollAfterMs);
  }
}

it('a machine boots from an imported image, which stays while the machine is there', async () => {
  expect(await importFile(TINY)).toMatchObject({ verdict: 'ok', finding: 'it is the volume imported.qcow2' });
  const content = `imported.qcow2.${createHash('sha256').update(readFileSync(TINY)).digest('hex')}`;
  const downloaded = join(folder, 'downloaded');
  host.virsh('vol-download', '--pool', 'berth', content, downloaded);
  expect(readFileSync(downloaded).equals(readFileSync(TINY))).toBe(true);
  expect(await importFile(TINY)).toMatchObject({ finding: expect.stringContaining('already') });

  const other = join(folder, 'other.qcow2');
  copyFileSync(TINY, other);
  host.run('qemu-img', 'resize', '-q', other, '+1M');
  const driver = openLibvirt(config(), { catalog, clock: systemClock, log: collectLog().log });
  const machine = await create(driver);
  const login = async (): Promise<string | undefined> => guest.run?.(machine, 'echo it runs');
  await expect.poll(() => login().catch(String)).toContain('it runs');
  expect(await importFile(other, true)).toMatchObject({
    verdict: 'broken',
    finding: expect.stringContaining(`${spec.ref}.qcow2 is based on`),
  });
  for (;;) {
    const step = await driver.destroy(spec.ref, null);
    if (step.outcome === 'done') break;
    await sleep(200);
  }
  expect(await importFile(other, true)).toMatchObject({ verdict: 'ok' });
  expect(host.contents().filter((name) => name.startsWith('imported'))).toEqual([
    'imported.qcow2',
    expect.not.stringContaining(content),
  ]);
  await driver.close();
});

it('an image with a backing file is not uploaded', async () => {
  const overlay = join(folder, 'overlay.qcow2');
  host.run('qemu-img', 'create', '-q', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', overlay);
  await expect(importFile(overlay)).rejects.toThrow('it has a backing file');
});

it('an image with its data in another file is not uploaded', async () => {
  const elsewhere = join(folder, 'elsewhere.qcow2');
  const option = `data_file=${join(folder, 'data')}`;
  host.run('qemu-img', 'create', '-q', '-f', 'qcow2', '-o', option, elsewhere, '1M');
  await expect(importFile(elsewhere)).rejects.toThrow('external file');
});
