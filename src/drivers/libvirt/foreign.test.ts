import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { aDomain, aMark } from './domain-xml.fixture.ts';
import { toDomainXml, uuidOf } from './domain-xml.ts';
import { listDomains } from './hosts/domains.ts';
import { MemoryHost } from './memory-host.fixture.ts';
import { openMemoryPlatform } from './platform.fixture.ts';

const REF = 'berth-inst-1';
const VOLUME = 'berth-vol-1';
const DISK = `${VOLUME}.volume`;
const MARK = `${VOLUME}.mark`;
const ourMark = JSON.stringify({ createdBy: 'berth', ref: VOLUME, createdAt: 1, note: '' });

/** A host with these files in its pool. */
function aHost(files: Record<string, string> = {}) {
  const host = new MemoryHost();
  host.files.clear();
  for (const [name, content] of Object.entries(files))
    host.files.set(name, { content: Buffer.from(content), bytes: 1024 ** 3 });
  const { driver, context } = openMemoryPlatform([host]).bench;
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  /** Drops the commands that end with `text` from combined virsh calls. */
  const hide = (text: string): void => {
    const { virsh } = host;
    host.virsh = async (args, call) => {
      const [command = ''] = args;
      const shown = command.split('; ').filter((line) => !line.endsWith(text));
      return virsh([shown.join('; '), ...args.slice(1)], call);
    };
  };
  return { host, driver, volumes, hide, volumeSpec: context.volumeSpec(VOLUME) };
}

it("the files of another's domain stay, whatever it is called", async () => {
  const { host, driver } = aHost({ [`${REF}.qcow2`]: 'theirs' });
  host.define(`<domain><name>${REF}</name><uuid>4b2f7f5e-7b11-4d5c-9f0a-2f6f0a3b6f10</uuid></domain>`);
  expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
  expect(await driver.destroy(REF, null, anOrder)).toEqual({ outcome: 'done', value: null });
  expect([...host.files.keys()]).toEqual([`${REF}.qcow2`]);
});

it('what the file of a volume takes is reported as its use', async () => {
  const { host, volumes, volumeSpec } = aHost({});
  await volumes.create(volumeSpec, null);
  Object.assign(host.files.get(DISK) ?? {}, { content: Buffer.alloc(196_616) });
  expect(await volumes.usage?.()).toMatchObject({ items: [{ ref: VOLUME, usedBytes: 196_616 }] });
});

it('a disk without the mark is not treated as Berth’s, and only an order for that volume removes it', async () => {
  const { host, volumes, volumeSpec } = aHost({ [DISK]: 'theirs' });
  expect(await volumes.create(volumeSpec, null)).toMatchObject({
    outcome: 'failed',
    code: 'already_exists',
  });
  expect(await volumes.get(VOLUME)).toMatchObject({
    answer: 'unknown',
    reason: expect.stringContaining(`${DISK} without ${MARK}`),
  });
  expect(await volumes.list()).toMatchObject({
    items: [],
    leftovers: [{ ref: VOLUME, host: 'kvm-1', detail: DISK }],
  });
  expect(host.files.get(DISK)?.content.toString()).toBe('theirs');
  expect(await volumes.destroy(VOLUME, null, anOrder)).toEqual({ outcome: 'done', value: null });
  expect([...host.files.keys()]).toEqual([]);
});

it('a volume that libvirt leaves out once is neither gone nor made again', async () => {
  const { host, volumes, volumeSpec, hide } = aHost({ [DISK]: 'data', [MARK]: ourMark });
  hide(DISK);
  expect(await volumes.get(VOLUME)).toMatchObject({ answer: 'unknown' });
  const refusal = { outcome: 'failed', code: 'transient' };
  expect(await volumes.create(volumeSpec, null)).toMatchObject(refusal);
  expect(await volumes.destroy(VOLUME, null, anOrder)).toMatchObject(refusal);
  expect(host.files.get(DISK)?.content.toString()).toBe('data');
});

it('a listing is unknown when libvirt leaves out an existing domain', async () => {
  const { host, hide } = aHost();
  for (const name of ['berth-a', 'berth-b'])
    host.define(toDomainXml(aDomain({ name, mark: aMark({ ref: name }) })));
  expect(await listDomains(host)).toHaveLength(2);
  hide(uuidOf('berth-b'));
  await expect(listDomains(host)).rejects.toMatchObject({ problem: 'busy' });
});

it('a note forwards no ports, although it shares a line with the other fields', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-hook-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'nft'), `#!/bin/sh\ncat > '${folder}/rules'\n`);
  chmodSync(join(folder, 'nft'), 0o755);
  const note = ` host-port='22' address='203.0.113.9' guest-ports='22'`;
  const nat = { hostPort: 30_000, address: '192.168.150.2', bridge: 'virbr-berth', guestPorts: [22] };
  const xml = toDomainXml(aDomain({ mark: aMark({ note, nat }) }));
  const hook = join(import.meta.dirname, '../../../examples/libvirt/berth-hook');
  const env = { PATH: `${folder}:${process.env['PATH']}` };
  execFileSync('sh', [hook, REF, 'prepare', 'begin', '-'], { input: xml, env });
  const rules = readFileSync(join(folder, 'rules'), 'utf8');
  expect(rules).toContain('dport 30000 dnat to 192.168.150.2:22');
  expect(rules).not.toContain('203.0.113.9');
});
