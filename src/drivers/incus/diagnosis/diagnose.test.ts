import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { PATIENCE_MS } from '../../../../test/support/time/until.ts';
import type { Catalog, Offer } from '../../../orchestrator/catalog/catalog.ts';
import type { Diagnosis } from '../../../ports/diagnosis.ts';
import { incusConfigSchema } from '../options.ts';
import { diagnose } from './diagnose.ts';

const folder = mkdtempSync(join(tmpdir(), 'incus-diagnose-'));
const socket = join(folder, 'unix.socket');
let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  rmSync(socket, { force: true });
});

const FINGERPRINT = '807dddf6868ce4753eeb425f80885fac48b8bd0ed91704d7f51d4d9326363f56';
const extensions = ['network_forward', 'instance_state_started_at', 'cluster_internal_custom_volume_copy'];
const aWarning = (type: string, more: object = {}) => ({
  ...{ uuid: '09db7d82-2ef0-4309-b1ef-165c1adfbd6a', status: 'new', severity: 'low', location: 'none' },
  ...{ type, project: '', entity_url: '', last_message: 'memory limits will be ignored', count: 1, ...more },
});
const MEMORY = "Couldn't find the CGroup memory controller";

/** Answers of a single Incus 6.0.4 daemon without problems. */
const answers: Record<string, unknown> = {
  '/1.0': {
    auth: 'trusted',
    api_extensions: extensions,
    environment: { server_clustered: false, server_name: 'n1', server_version: '6.0.4', driver: 'lxc' },
  },
  '/1.0/projects/default': {},
  '/1.0/storage-pools/default': { driver: 'btrfs', status: 'Created' },
  '/1.0/storage-pools/default/resources': { space: { total: 100 * 2 ** 30 } },
  '/1.0/storage-pools/default/volumes/custom': [],
  '/1.0/networks/tenants': {
    ...{ type: 'bridge', managed: true, status: 'Created' },
    config: { 'ipv4.address': '10.88.0.1/24', 'security.acls': 'tenants' },
  },
  '/1.0/images/aliases/debian': { target: FINGERPRINT, type: 'container' },
  [`/1.0/images/${FINGERPRINT}`]: { type: 'container', properties: { variant: 'cloud' } },
  '/1.0/instances': [],
  '/1.0/resources': { cpu: { total: 8 }, memory: { total: 64 * 2 ** 30 }, gpu: { cards: null } },
  '/1.0/warnings': null,
};

/** The findings of the doctor that are not `ok`, for a daemon with these answers. */
async function findings(
  changed: Record<string, unknown>,
  more: object = {},
  machine: Offer['machine'] = {},
  withinMs = PATIENCE_MS,
) {
  const known = { ...answers, ...changed };
  server = createServer(({ url = '', method }, reply) => {
    const { pathname, searchParams } = new URL(url, 'http://incus');
    // With a project, Incus omits warnings about its host.
    const isHidden = pathname === '/1.0/warnings' && searchParams.has('project');
    const path = decodeURIComponent(pathname);
    const metadata = isHidden ? [] : (known[`${method} ${path}`] ?? known[path]);
    if (metadata === 'never') return;
    if (metadata === 'lost') return void reply.destroy();
    const found = metadata !== undefined;
    const envelope = found
      ? { type: 'sync', metadata }
      : { type: 'error', error: 'not found', error_code: 404 };
    if (metadata instanceof Error)
      Object.assign(envelope, { type: 'error', error: metadata.message, error_code: 500 });
    reply.writeHead(found ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(envelope));
  }).listen(socket);
  await once(server, 'listening');
  const offer: Partial<Offer> = {
    ...{
      id: 'small',
      machine,
      vcpus: 1,
      memoryGb: 1,
      storageGb: 1,
      gpuCount: undefined,
      osOptions: ['debian'],
    },
    placements: [{ region: 'fra', units: 1 }],
  };
  const catalog = { regions: new Map(), offers: new Map([['small', offer]]) } as unknown as Catalog;
  const options = incusConfigSchema.parse({ driver: 'incus', network: 'tenants', ...more });
  const asking = { withinMs, signal: new AbortController().signal };
  const connection = { addresses: [`unix:${socket}`], project: 'default', asking };
  const found: Diagnosis[] = [];
  for await (const one of diagnose(options, catalog, Date.now, connection)) found.push(one);
  for (const { verdict, remedy } of found) expect(remedy === undefined).toBe(verdict === 'ok');
  return found.filter(({ verdict }) => verdict !== 'ok');
}

describe('berth doctor on a single daemon of Incus', () => {
  it('has nothing to say where all is well', async () => {
    expect(await findings({})).toEqual([]);
  });

  it.each<[string, object, Partial<Diagnosis>]>([
    [
      'a missing memory controller, for which limits are ignored',
      aWarning(MEMORY),
      { verdict: 'warning', finding: expect.stringContaining('limits will be ignored') },
    ],
    [
      'a pool of ours that is not there keeps machines from starting',
      aWarning('Storage pool unavailable', { severity: 'high', entity_url: '/1.0/storage-pools/default' }),
      { verdict: 'broken', finding: expect.stringMatching(/^Storage pool unavailable \(default\)/) },
    ],
    [
      'so does a network of ours',
      aWarning('Network unavailable', { severity: 'high', entity_url: '/1.0/networks/tenants?project=x' }),
      { verdict: 'broken', finding: expect.stringMatching(/^Network unavailable \(tenants\)/) },
    ],
    [
      'a machine did not start with its host',
      aWarning('Failed to autostart instance', { entity_url: '/1.0/instances/berth-a' }),
      { verdict: 'warning', finding: expect.stringContaining('instance (berth-a)') },
    ],
    [
      'an unknown one, for its severity',
      aWarning('The sky is falling', { severity: 'high', location: 'n2' }),
      { verdict: 'warning', subject: 'warning of Incus on n2', finding: expect.stringMatching(/^The sky/) },
    ],
  ])(
    'a warning of Incus is reported with a remedy: %s [incus-doctor-warnings]',
    async (_what, one, expected) => {
      expect(await findings({ '/1.0/warnings': [one] })).toMatchObject([expected]);
    },
  );

  it.each([
    ['that was acknowledged', aWarning(MEMORY, { status: 'acknowledged' })],
    ['about what machines of Berth do not have', aWarning("Couldn't find the CGroup blkio.weight")],
    [
      'about the pool of another',
      aWarning('Storage pool unavailable', { entity_url: '/1.0/storage-pools/x' }),
    ],
  ])('a warning of Incus %s is nothing to mend', async (_what, one) => {
    expect(await findings({ '/1.0/warnings': [one] })).toEqual([]);
  });

  it('a cluster group, and addresses of members, are nothing that it has', async () => {
    const forwards = { ports: '1000-1001', addresses: { n1: '203.0.113.1' } };
    const found = await findings({}, { datacenters: { fra: 'frankfurt' }, port_forwards: forwards });
    expect(found).toMatchObject([
      { verdict: 'broken', subject: 'cluster group frankfurt' },
      { verdict: 'broken', subject: 'port forwards on none', finding: expect.stringContaining('`none`') },
      { verdict: 'warning', subject: 'room for small in fra' },
    ]);
  });

  it('a cluster whose members cannot be read has that finding, and none that needs them', async () => {
    const server = answers['/1.0'] as { environment: object };
    const environment = { ...server.environment, server_clustered: true };
    const changed = { '/1.0': { ...server, environment }, '/1.0/cluster/members': new Error('no leader') };
    expect(await findings(changed, { datacenters: { fra: 'frankfurt' } })).toMatchObject([
      { verdict: 'broken', subject: 'cluster members', finding: 'No leader.' },
    ]);
  });

  const writes = 'POST /1.0/storage-pools/default/volumes/custom';
  const disks = join(folder, 'disks');
  mkdirSync(disks);
  for (const name of ['allocated.img', 'sparse.img']) writeFileSync(join(disks, name), '');
  truncateSync(join(disks, 'sparse.img'), 2 ** 20);
  const inFile = (file: string, config: object = {}) => ({
    '/1.0/storage-pools/default': {
      ...{ driver: 'btrfs', status: 'Created', config: { source: join(disks, file), ...config } },
    },
  });
  it.each<[string, Record<string, unknown>, string, string]>([
    ['is read-only', { [writes]: new Error('create x: Read-only file system') }, 'broken', 'It is read-only'],
    ['has a sparse file', inFile('sparse.img'), 'warning', 'may still grow'],
    ['has a file that Berth cannot read', inFile('hidden.img'), 'warning', 'Berth cannot read'],
  ])('a pool that %s is not fine [incus-doctor-pool]', async (_what, changed, verdict, finding) => {
    expect((await findings(changed))[0]).toMatchObject({
      ...{ verdict, subject: 'storage pool default', finding: expect.stringContaining(finding) },
    });
  });

  it.each([
    inFile('allocated.img'),
    inFile('hidden.img', { 'btrfs.mount_options': 'user_subvol_rm_allowed,nodiscard' }),
  ])('a pool in a file that keeps its space is fine [incus-doctor-pool-kept]', async (changed) => {
    expect(await findings(changed)).toEqual([]);
  });

  it.each<[string, Record<string, unknown>, Offer['machine'], string]>([
    [
      'a pool that was not set up',
      { '/1.0/storage-pools/default': { status: 'Unvailable' } },
      {},
      'storage pool',
    ],
    [
      'a bridge without addresses',
      {
        '/1.0/networks/tenants': {
          type: 'bridge',
          managed: true,
          status: 'Created',
          config: { 'security.acls': 'x' },
        },
      },
      {},
      'addresses on tenants',
    ],
    ['an image of another kind', {}, { kind: 'virtual-machine' }, 'image debian'],
    ['an image that is not there', { '/1.0/images/aliases/debian': undefined }, {}, 'image debian'],
  ])('%s keeps machines from coming up', async (_what, changed, machine, subject) => {
    const broken = (await findings(changed, {}, machine)).filter(({ verdict }) => verdict === 'broken');
    expect(broken[0]?.subject).toContain(subject);
  });

  it('an image is named by its fingerprint too', async () => {
    const images = { debian: { alias: FINGERPRINT } };
    expect(await findings({ '/1.0/images/aliases/debian': undefined }, { images })).toEqual([]);
  });

  it('says of a daemon that hangs that it does not answer, within the time for one question', async () => {
    expect(await findings({ '/1.0': 'never' }, {}, {}, 50)).toMatchObject([
      {
        verdict: 'broken',
        subject: `connection to unix:${socket}`,
        remedy: expect.stringContaining('incusd'),
      },
    ]);
  });

  it('goes on after a question without an answer, and says which', async () => {
    expect(await findings({ '/1.0/warnings': 'lost' })).toMatchObject([
      { verdict: 'broken', subject: 'warnings of Incus' },
    ]);
  });
});
