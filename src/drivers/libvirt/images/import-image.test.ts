import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../../ports/diagnosis.ts';
import { aCatalog } from '../catalog.fixture.ts';
import type { Host, VirshCall } from '../client.ts';
import { VirshError } from '../errors.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import { libvirtConfigSchema } from '../options.ts';
import { importImage } from './import-image.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-images-'));
afterAll(() => rmSync(folder, { recursive: true }));

const POOL = '/pool';
const VOLUME = 'debian-12.qcow2';

/** A qcow2 file, version 3, with 64-bit fields at these offsets; `tail` varies its content. */
function anImage(fields: Record<number, bigint> = {}, tail = ''): { path: string; sha256: string } {
  const header = Buffer.alloc(512);
  header.writeUInt32BE(0x5146_49fb, 0);
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(2n * 1024n ** 3n, 24);
  for (const [at, value] of Object.entries(fields)) header.writeBigUInt64BE(value, Number(at));
  return aFile(Buffer.concat([header, Buffer.from(tail)]));
}

function aFile(content: Uint8Array): { path: string; sha256: string } {
  const path = join(folder, crypto.randomUUID());
  writeFileSync(path, content);
  return { path, sha256: createHash('sha256').update(content).digest('hex') };
}

interface Volume {
  content: Buffer;
  backing?: string;
}

/** A host with a pool in memory. `upload` may alter the content; `calls` records the changing commands. */
function aPool(upload: (content: Buffer) => Buffer = (content) => content) {
  const volumes = new Map<string, Volume>();
  const calls: string[] = [];
  const named = (name: string): Volume => {
    const volume = volumes.get(name);
    if (volume === undefined) throw new VirshError('no_volume', `no ${name}`);
    return volume;
  };
  const answers: Record<string, (args: readonly string[], call: VirshCall) => string> = {
    'vol-list': () => [...volumes.keys()].map((name) => ` ${name}   ${POOL}/${name}`).join('\n'),
    'vol-dumpxml'(args) {
      const { backing } = named(args.at(-1) ?? '');
      const store =
        backing === undefined ? '' : `<backingStore><path>${POOL}/${backing}</path></backingStore>`;
      return `<volume><target><path>${POOL}/${args.at(-1)}</path></target>${store}</volume>`;
    },
    'vol-info': (args) => `Physical: ${named(args.at(-1) ?? '').content.length}`,
    'vol-delete'(args) {
      named(args.at(-1) ?? '');
      volumes.delete(args.at(-1) ?? '');
      return '';
    },
    'vol-create-as'(args) {
      if (volumes.has(args[2] ?? '')) throw new VirshError('exists', `${args[2]} already exists`);
      const backing = args[args.indexOf('--backing-vol') + 1];
      volumes.set(args[2] ?? '', {
        content: Buffer.alloc(1),
        ...(args.includes('--backing-vol') && backing !== undefined && { backing }),
      });
      return '';
    },
    'vol-upload'(args, { file = -1 }) {
      named(args[3] ?? '').content = upload(readFileSync(`/proc/self/fd/${file}`));
      return '';
    },
  };
  const virsh: Host['virsh'] = async (args, call = {}) => {
    const [command = ''] = args;
    if (/^vol-(create-as|upload|delete)$/.test(command)) calls.push(command);
    return answers[command]?.(args, call) ?? '';
  };
  return { volumes, calls, virsh };
}

type Pool = ReturnType<typeof aPool>;

/** The findings of an import into these hosts, named `kvm-1` and so on. */
async function importTo(
  pools: readonly Pool[],
  path: string,
  more: { image?: object; machine?: object; replace?: boolean; host?: string } = {},
): Promise<Diagnosis[]> {
  const { image = {}, machine, replace = false, host } = more;
  const config = libvirtConfigSchema.parse({
    driver: 'libvirt',
    hosts: pools.map((_, index) => someHostOptions({ name: `kvm-${index + 1}` })),
    images: { 'debian-12': { volume: VOLUME, user: 'debian', ...image } },
  });
  const open = (options: (typeof config.hosts)[number]): Host => {
    const pool = pools[Number(options.name.slice(4)) - 1];
    return { name: options.name, options, lastKnown: new Map(), virsh: pool?.virsh } as unknown as Host;
  };
  const request = { name: 'debian-12', file: path, host, replace };
  const catalog = aCatalog(machine);
  const findings: Diagnosis[] = [];
  for await (const finding of importImage(config, { catalog }, request, open)) findings.push(finding);
  return findings;
}

const contentOf = (pool: Pool, volume = VOLUME): Buffer | undefined =>
  pool.volumes.get(pool.volumes.get(volume)?.backing ?? '')?.content;

describe('an image that is imported', () => {
  it('is complete in the pool of each host, under the configured name', async () => {
    const pools = [aPool(), aPool()];
    const { path, sha256 } = anImage();
    const findings = await importTo(pools, path, { image: { sha256 } });
    expect(findings.map(({ verdict }) => verdict)).not.toContain('broken');
    for (const pool of pools) {
      expect(contentOf(pool)).toEqual(readFileSync(path));
      expect([...pool.volumes.keys()].toSorted()).toEqual([VOLUME, `${VOLUME}.${sha256}`]);
    }
  });

  it('is on the named host only', async () => {
    const pools = [aPool(), aPool()];
    await importTo(pools, anImage().path, { host: 'kvm-2' });
    expect(pools.map(({ volumes }) => volumes.size)).toEqual([0, 2]);
    await expect(importTo(pools, anImage().path, { host: 'kvm-3' })).rejects.toThrow(
      'There is no host kvm-3',
    );
  });

  it('reports the digest to configure if there is none', async () => {
    const { path, sha256 } = anImage();
    const [first] = await importTo([aPool()], path);
    expect(first).toMatchObject({ verdict: 'warning', remedy: expect.stringContaining(sha256) });
  });

  it('changes nothing the second time, and says so', async () => {
    const pool = aPool();
    const { path } = anImage();
    await importTo([pool], path);
    pool.calls.length = 0;
    const findings = await importTo([pool], path);
    expect(findings.at(-1)).toMatchObject({ verdict: 'ok', finding: expect.stringContaining('already') });
    expect(pool.calls).toEqual([]);
  });

  it('goes to the image of an offer if the digest is that of its own image', async () => {
    const pool = aPool();
    const { path, sha256 } = anImage();
    const own = { volume: 'other.qcow2', user: 'debian', sha256 };
    await importTo([pool], path, { machine: { images: { 'debian-12': own } } });
    expect(contentOf(pool, 'other.qcow2')).toEqual(readFileSync(path));
    expect(pool.volumes.has(VOLUME)).toBe(false);
  });
});

describe('nothing is uploaded', () => {
  const refused: [string, () => { path: string }, RegExp, { image?: object; machine?: object }?][] = [
    [
      'of another digest',
      anImage,
      /SHA-256 is .* configured one is a{64}/,
      { image: { sha256: 'a'.repeat(64) } },
    ],
    ['with a backing file', () => anImage({ 8: 512n }), /backing file/],
    ['with its data elsewhere', () => anImage({ 72: 4n }), /external file/],
    ['that is damaged', () => anImage({ 72: 2n }), /damaged/],
    ['with a feature that is not known', () => anImage({ 72: 1n << 40n }), /damaged/],
    ['that is encrypted', () => anImage({ 32: 2n << 32n }), /encrypted/],
    ['that is not qcow2', () => aFile(Buffer.alloc(4096)), /not a qcow2 file/],
    ['that is cut off', () => aFile(Buffer.from('QFI\xfb', 'latin1')), /not a qcow2 file/],
    ['that is not there', () => ({ path: join(folder, 'none') }), /cannot be read/],
    ['that is a folder', () => ({ path: folder }), /is not a file/],
    [
      'that may be several images',
      anImage,
      /may be .* or other\.qcow2: add sha256/,
      { machine: { images: { 'debian-12': { volume: 'other.qcow2', user: 'debian' } } } },
    ],
  ];
  it.each(refused)('of a file %s', async (_what, make, sentence, more) => {
    const pool = aPool();
    await expect(importTo([pool], make().path, more)).rejects.toThrow(sentence);
    expect(pool.calls).toEqual([]);
  });

  it('over an existing image', async () => {
    const pool = aPool();
    await importTo([pool], anImage().path);
    pool.calls.length = 0;
    const findings = await importTo([pool], anImage({}, 'newer').path);
    expect(findings.at(-1)).toMatchObject({
      verdict: 'broken',
      remedy: expect.stringContaining('--replace'),
    });
    expect(pool.calls).toEqual([]);
  });

  it('over an image that machines are based on, even with --replace', async () => {
    const pool = aPool();
    await importTo([pool], anImage().path);
    pool.volumes.set('berth-inst-1.qcow2', { content: Buffer.alloc(0), backing: VOLUME });
    pool.calls.length = 0;
    const findings = await importTo([pool], anImage({}, 'newer').path, { replace: true });
    expect(findings.at(-1)).toMatchObject({
      verdict: 'broken',
      finding: expect.stringContaining('berth-inst-1.qcow2'),
    });
    expect(pool.calls).toEqual([]);
  });
});

it('an image that nothing is based on is replaced, and the old one is removed', async () => {
  const pool = aPool();
  await importTo([pool], anImage().path);
  const { path, sha256 } = anImage({}, 'newer');
  await importTo([pool], path, { replace: true });
  expect(contentOf(pool)).toEqual(readFileSync(path));
  expect([...pool.volumes.keys()].toSorted()).toEqual([VOLUME, `${VOLUME}.${sha256}`]);
});

it('a machine that is made while the image is uploaded keeps its image', async () => {
  const pool: Pool = aPool((content) => {
    if (pool.volumes.has(VOLUME))
      pool.volumes.set('berth-inst-1.qcow2', { content: Buffer.alloc(0), backing: VOLUME });
    return content;
  });
  const old = anImage();
  await importTo([pool], old.path);
  const findings = await importTo([pool], anImage({}, 'newer').path, { replace: true });
  expect(findings.at(-1)).toMatchObject({ verdict: 'broken' });
  expect(contentOf(pool)).toEqual(readFileSync(old.path));
  expect(pool.volumes.size).toBe(3);
});

const breaksOff = (): Buffer => {
  throw new VirshError('unreachable', 'gone');
};
it.each([
  ['that breaks off', breaksOff],
  ['with a missing part', (content: Buffer) => content.subarray(0, 100)],
])('an upload %s makes no image, and the other hosts get theirs', async (_what, upload) => {
  const bad = aPool(upload);
  const good = aPool();
  const { path } = anImage();
  const findings = await importTo([bad, good], path);
  expect(findings).toContainEqual(
    expect.objectContaining({ verdict: 'broken', subject: 'image debian-12 on host kvm-1' }),
  );
  expect(bad.volumes.size).toBe(0);
  expect(contentOf(good)).toEqual(readFileSync(path));
});

it.each(['half', 'all'])(
  'an import that was killed after %s of the upload is uploaded again',
  async (part) => {
    const pool = aPool();
    const { path, sha256 } = anImage();
    const content = part === 'all' ? readFileSync(path) : Buffer.from('half');
    pool.volumes.set(`${VOLUME}.${sha256}`, { content });
    await importTo([pool], path);
    expect(contentOf(pool)).toEqual(readFileSync(path));
  },
);
