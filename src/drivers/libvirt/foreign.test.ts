import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { anOrder } from '../../orchestrator/model/destroy-order.fixture.ts';
import type { Platform } from './create.ts';
import { aDomain, aMark } from './domain-xml.fixture.ts';
import { toDomainXml, uuidOf } from './domain-xml.ts';
import { VirshError } from './errors.ts';
import type { Fleet, Member } from './fleet.ts';
import { someHostOptions } from './host-options.fixture.ts';
import { listDomains } from './hosts/host-view.ts';
import { destroyMachine } from './power.ts';
import { createVolumes } from './volumes.ts';

const REF = 'berth-inst-1';
const DISK = 'berth-vol-1.volume';
const MARK = 'berth-vol-1.mark';
const ourMark = JSON.stringify({ createdBy: 'berth', ref: 'berth-vol-1', createdAt: 1, note: '' });

/** A host with these files in its pool and these domains by their names; `untold`: what virsh fails to show just now. */
function aHost(content: {
  files?: Record<string, string>;
  domains?: Record<string, string>;
  untold?: readonly string[];
}) {
  const { files = {}, domains = {}, untold = [] } = content;
  const show = (what: string): string => {
    if (untold.includes(what)) return '';
    if (what.includes('.')) return `<volume><name>${what}</name><capacity>1073741824</capacity></volume>`;
    return Object.values(domains).find((xml) => xml.includes(what)) ?? '';
  };
  const answers: Record<string, (rest: readonly string[], last: string) => string> = {
    dumpxml(_, name) {
      const xml = domains[name];
      if (xml === undefined) throw new VirshError('no_domain', 'none');
      return xml;
    },
    list: (rest) =>
      Object.keys(domains)
        .map((name) => (rest.includes('--uuid') ? uuidOf(name) : name))
        .join('\n'),
    'vol-list': () => Object.keys(files).join('\n'),
    'pool-info': () => 'Available: 107374182400',
    'vol-delete'(_, name) {
      delete files[name];
      return '';
    },
    'vol-create-as'([, name = '']) {
      files[name] = '';
      return '';
    },
  };
  const virsh = async ([command = '', ...rest]: readonly string[]): Promise<string> => {
    const shown = command
      .split('; ')
      .slice(0, -1)
      .map((one) => show(one.split(' ').at(-1) ?? ''));
    return shown.length > 0 ? shown.join('\n') : (answers[command]?.(rest, rest.at(-1) ?? '') ?? '');
  };
  const virshBytes = async (args: readonly string[]): Promise<Buffer> =>
    Buffer.from(files[args[3] ?? ''] ?? '');
  const options = someHostOptions();
  const host = { name: options.name, options, virsh, virshBytes } as unknown as Member;
  const fleet: Fleet = {
    hosts: [host],
    find: async () => ({ answer: 'gone', hosts: { answered: [host.name], silent: [] } }),
    alone: (_, task) => task(),
  };
  const platform = { fleet, clock: { now: () => 1 } } as unknown as Platform;
  return { host, files, platform };
}

it("the files of another's domain stay, whatever it is called", async () => {
  const files = { [`${REF}.qcow2`]: 'theirs' };
  const domains = { [REF]: `<domain><name>${REF}</name></domain>` };
  const { platform } = aHost({ files, domains });
  expect(await destroyMachine(platform, REF)).toEqual({ outcome: 'done', value: null });
  expect(Object.keys(files)).toEqual([`${REF}.qcow2`]);
});

it('those that a domain of ours left behind do not', async () => {
  const { platform, files } = aHost({ files: { [`${REF}.qcow2`]: 'ours', [`${REF}.seed`]: '' } });
  expect(await destroyMachine(platform, REF)).toEqual({ outcome: 'done', value: null });
  expect(files).toEqual({});
});

it('a disk without our mark is neither deleted nor taken for ours', async () => {
  const { platform, files } = aHost({ files: { [DISK]: 'theirs' } });
  const volumes = createVolumes(platform);
  const spec = { ref: 'berth-vol-1', datacenter: 'fra', sizeGb: 1, note: '', type: 'nvme' };
  expect(await volumes.create(spec as Parameters<typeof volumes.create>[0], null)).toMatchObject({
    outcome: 'failed',
    code: 'already_exists',
  });
  expect(await volumes.destroy('berth-vol-1', null, anOrder)).toEqual({ outcome: 'done', value: null });
  expect(files).toEqual({ [DISK]: 'theirs' });
});

it('a volume that libvirt does not tell of just now is not gone, nor made anew', async () => {
  const { platform, files } = aHost({ files: { [DISK]: 'data', [MARK]: ourMark }, untold: [DISK] });
  const volumes = createVolumes(platform);
  expect(await volumes.get('berth-vol-1')).toMatchObject({ answer: 'unknown' });
  const spec = { ref: 'berth-vol-1', datacenter: 'fra', sizeGb: 1, note: '', type: 'nvme' };
  expect(await volumes.create(spec as Parameters<typeof volumes.create>[0], null)).toMatchObject({
    outcome: 'failed',
    code: 'transient',
  });
  expect(await volumes.destroy('berth-vol-1', null, anOrder)).toMatchObject({
    outcome: 'failed',
    code: 'transient',
  });
  expect(files[DISK]).toBe('data');
});

it('a domain that is there and that libvirt does not tell of is not left out of a list', async () => {
  const xml = (name: string): string => toDomainXml(aDomain({ name, mark: aMark({ ref: name }) }));
  const domains = { 'berth-a': xml('berth-a'), 'berth-b': xml('berth-b') };
  expect(await listDomains(aHost({ domains }).host)).toHaveLength(2);
  const { host } = aHost({ domains, untold: [uuidOf('berth-b')] });
  await expect(listDomains(host)).rejects.toMatchObject({ problem: 'busy' });
});

it('a note leads no port anywhere, though it stands on one line with the rest', () => {
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
