import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runMain } from '../../../test/support/processes/run-main.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-image-command-'));
afterAll(() => rmSync(folder, { recursive: true }));

const LIBVIRT =
  '{ driver: libvirt, hosts: [{ name: kvm-1, uri: "qemu+unix:///system?socket=/nowhere/sock", datacenter: one-1, public_ip: 192.0.2.1 }], images: { x: { volume: x.qcow2, user: debian } } }';

function catalogFor(platform: string): string {
  const file = join(folder, `catalog-${platform}.yaml`);
  writeFileSync(
    file,
    `regions: { eu-one: { name: One, country_code: DE, datacenter: one-1 } }\noffers:\n  - { id: a, name: A, ${platform === '' ? '' : `platform: ${platform}, `}instance_type: DEDICATED, vcpus: 1, memory_gb: 1, storage_gb: 1, price_per_hour: 1, os_options: [x], supports_cloud_init: true, capacity: { eu-one: 1 } }\n`,
  );
  return file;
}

function importWith(yaml: string, image: string, ...flags: string[]) {
  const config = join(folder, 'berth.yaml');
  writeFileSync(config, yaml);
  return runMain(['image', 'import', 'x', image, '--config', config, ...flags]);
}

/** The header of a qcow2 file of version 2. */
function anImage(): string {
  const header = Buffer.alloc(512);
  header.writeUInt32BE(0x5146_49fb, 0);
  header.writeUInt32BE(2, 4);
  header.writeBigUInt64BE(1n << 30n, 24);
  const file = join(folder, 'image.qcow2');
  writeFileSync(file, header);
  return file;
}

it.each([
  [
    'simulator',
    'platform: { driver: simulator }\n',
    /driver simulator cannot import images\. The simulator needs none/,
  ],
  [
    'exec',
    'platform: { driver: exec, command: [/bin/true] }\n',
    /driver exec cannot import images\. The driver program/,
  ],
])('refuses to import an image into a driver without images: %s', async (_name, yaml, sentence) => {
  const { code, stderr } = await importWith(yaml, anImage());
  expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
});

it('requires the name of a configured platform if there are several', async () => {
  const yaml = `platforms: { here: { driver: simulator }, there: { driver: simulator } }\ncatalog: ${catalogFor('here')}\n`;
  const none = await importWith(yaml, anImage());
  expect([none.code, none.stderr]).toEqual([
    1,
    expect.stringContaining('--platform with one of here, there'),
  ]);
  const wrong = await importWith(yaml, anImage(), '--platform', 'x');
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('There is no platform x')]);
  const right = await importWith(yaml, anImage(), '--platform', 'there');
  expect(right.stderr).toContain('The simulator needs none');
});

it('reports a failure on a host as a line of JSON and in the exit status', async () => {
  const yaml = `platform: ${LIBVIRT}\ncatalog: ${catalogFor('')}\n`;
  const { code, stdout } = await importWith(yaml, anImage(), '--json');
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([
    { verdict: 'warning', remedy: expect.stringMatching(/sha256: [0-9a-f]{64}/) },
    { verdict: 'broken', subject: 'image x on host kvm-1' },
  ]);
  expect(code).toBe(1);
});
