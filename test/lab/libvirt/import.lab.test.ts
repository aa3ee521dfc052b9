import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { importImage } from '../../../src/drivers/libvirt/images/import-image.ts';
import { openLibvirt } from '../../../src/drivers/libvirt/open.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import type { ObservedMachine, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Diagnosis } from '../../../src/ports/diagnosis.ts';
import { anOrder } from '../../support/rows/orchestrator-rows.ts';
import { type LabMachine, run, settingOf, specOf } from '../driver-context.ts';
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

const machine: LabMachine = { datacenter: 'lab1', image: 'imported', vcpus: 1, memoryGb: 0.1875 };
const setting = settingOf(machine);
const config = () => libvirtConfigSchema.parse({ ...platformOf([host]), images: { imported: IMPORTED } });

async function importFile(file: string, replace = false): Promise<Diagnosis | undefined> {
  const request = { name: 'imported', file, host: undefined, replace };
  const findings: Diagnosis[] = [];
  for await (const finding of importImage(config(), setting, request)) findings.push(finding);
  return findings.at(-1);
}

const spec = specOf('berth-imported-1', machine);

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
  const driver = openLibvirt(config(), setting);
  const made = await create(driver);
  await expect.poll(() => run(made, 'echo it runs').catch(String)).toContain('it runs');
  expect(await importFile(other, true)).toMatchObject({
    verdict: 'broken',
    finding: expect.stringContaining(`${spec.ref}.qcow2 is based on`),
  });
  for (;;) {
    const step = await driver.destroy(spec.ref, null, anOrder);
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
