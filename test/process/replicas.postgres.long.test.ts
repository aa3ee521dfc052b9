import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectSimulator } from '../../src/drivers/simulator/remote/driver.ts';
import { systemClock } from '../../src/runtime/system.ts';
import { type PostgresServer, startPostgres } from '../support/databases/postgres.ts';
import { type Client, createClient } from '../support/http/http-client.ts';
import {
  BerthProcess,
  runBerth,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

/** Of the bundled catalog. */
const SCARCE = { offer: 'h100-sxm-1x', region: 'eu-frankfurt', units: 3 };

const LEASE_MS = 6_000;
/** What is asked of the platform meanwhile: the other one looks for work, looks for the machine, and proves its SSH. */
const AFTER_LEASE_MS = 5_000;

const TOKEN = 'a-token-for-these-tests';
const env = { BERTH_SIMULATOR_TOKEN: TOKEN };

const folder = temporaryFolder();
let postgres: PostgresServer;
let database: string;
let simulator: BerthProcess;
let address: string;
let config: string;
let apiKey: string;
let servers: [ServingProcess, ServingProcess];
let clients: [Client, Client];

beforeAll(async () => {
  postgres = await startPostgres();
  database = await postgres.createDatabase();
  const platform = writeFastConfig(join(folder.path, 'platform'));
  const state = join(folder.path, 'platform.db');
  const flags = ['--json', '--port', '0', '--config', platform, '--state', state];
  simulator = new BerthProcess(['simulator', ...flags], { env });
  const line = await simulator.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  address = JSON.parse(line)['base_url'];
  config = writeFastConfig(folder.path, { address, leaseS: LEASE_MS / 1_000 });
  servers = await Promise.all([serve(), serve()]);
  apiKey = servers[0].apiKey || servers[1].apiKey;
  clients = [createClient(servers[0].baseUrl, apiKey), createClient(servers[1].baseUrl, apiKey)];
  for (const client of clients)
    await until('it has listed the platform and sells', async () => {
      const { body } = await client.request('GET', '/availability');
      return (body['configurations'] as unknown[]).length > 0;
    });
});

afterAll(async () => {
  for (const process of [...(servers ?? []), simulator]) await process?.end('SIGKILL');
  await postgres?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const serve = () => startServing(['--config', config, '--database', database], { env });

async function create(client: Client, overrides: Record<string, unknown> = {}) {
  const { status, body } = await client.request('POST', '/instances', { body: instanceRequest(overrides) });
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return `/instances/${body['id']}`;
}

async function destroy(client: Client, ...paths: string[]): Promise<void> {
  for (const path of paths) await client.request('DELETE', path);
  for (const path of paths) await client.waitFor(path, 'GONE');
}

/** The second server is in its call of a create when `end` has it killed or paused; the call goes through after that. */
async function endInCreate(end: () => Promise<void> | void) {
  simulator.child.kill('SIGSTOP');
  // The other server could claim it first.
  servers[0].child.kill('SIGSTOP');
  const path = await create(clients[1]);
  const id = path.split('/').at(-1) ?? '';
  const leasedUntil = async (): Promise<number> => {
    const rows = await postgres.query(`SELECT lease_until FROM work WHERE resource_id = '${id}'`, database);
    return Number(rows[0]?.['lease_until'] ?? 0);
  };
  await until('it is claimed', async () => (await leasedUntil()) > Date.now());
  servers[0].child.kill('SIGCONT');
  await end();
  const endedAt = performance.now();
  simulator.child.kill('SIGCONT');
  return { path, id, endedAt };
}

async function machinesOf(id: string): Promise<number> {
  const platform = connectSimulator({ address, token: TOKEN }, systemClock);
  const listing = await platform.list();
  await platform.close();
  if (listing.answer === 'unknown') throw new Error(listing.reason);
  return listing.items.filter(({ ref }) => ref === `berth-${id}`).length;
}

it('start on an empty database at once, and one of them shows a key', () => {
  expect(servers.map((server) => server.apiKey).filter(Boolean)).toHaveLength(1);
});

it('know each other’s instances from the moment of the 201 [replica-read-after-create]', async () => {
  const round = async (index: number): Promise<string> => {
    const [one, other] = index % 2 ? clients : clients.toReversed();
    if (one === undefined || other === undefined) throw new Error('expected two');
    const path = await create(one);
    for (let read = 0; read < 5; read++) expect((await other.request('GET', path)).status).toBe(200);
    return path;
  };
  const made = await Promise.all(Array.from({ length: 30 }, (_, index) => round(index)));
  await destroy(clients[0], ...made);
});

it('show every change of state, whichever of them made it', async () => {
  const [one, other] = clients;
  const path = await create(one);
  await Promise.all(clients.map((client) => client.waitFor(path, 'ONLINE')));
  await other.request('POST', `${path}/stop`);
  await Promise.all(clients.map((client) => client.waitFor(path, 'STOPPED')));
  await destroy(other, path);
  await one.waitFor(path, 'GONE');
});

it('list every instance, whoever made it, and none as it was before the last polled read [replica-list]', async () => {
  const states = ['PROVISIONING', 'ONLINE'];
  const made: string[] = [];
  for (let index = 0; index < 10; index++) made.push(await create(clients[index % 2] ?? clients[0]));
  const look = async (client: Client): Promise<boolean> => {
    const polled = await Promise.all(made.map(async (path) => (await client.request('GET', path)).body));
    const { instances } = (await client.request('GET', '/instances')).body as { instances: typeof polled };
    const listed = polled.map(({ id }) => instances.find((instance) => instance['id'] === id));
    for (const [index, before] of polled.entries())
      expect(states.indexOf(String(listed[index]?.['status']))).toBeGreaterThanOrEqual(
        states.indexOf(String(before['status'])),
      );
    return listed.every((instance) => instance?.['status'] === 'ONLINE');
  };
  await until('both list all of them as ONLINE', async () =>
    (await Promise.all(clients.map(look))).every(Boolean),
  );
  await destroy(clients[1], ...made);
  for (const client of clients)
    expect((await client.request('GET', '/instances')).body).toEqual({ instances: [] });
});

it('give M units to M of N creates [no-overselling-two-processes]', async () => {
  const creates = Array.from({ length: 24 }, (_, index) =>
    (clients[index % 2] ?? clients[0]).request('POST', '/instances', {
      body: instanceRequest({ configuration_id: SCARCE.offer, region: SCARCE.region }),
    }),
  );
  const replies = await Promise.all(creates);
  const made = replies.filter(({ status }) => status === 201);
  expect(made).toHaveLength(SCARCE.units);
  for (const { status, body: refusal } of replies)
    if (status !== 201)
      expect([status, refusal['error']]).toMatchObject([409, { code: 'capacity_unavailable' }]);
  await destroy(clients[1], ...made.map(({ body: instance }) => `/instances/${instance['id']}`));
});

it('let a revoked key in for less than 5 seconds, wherever it was revoked [replica-key-revoked]', async () => {
  const flags = ['--config', config, '--database', database];
  const { stdout } = await runBerth(['keys', 'create', '--json', ...flags]);
  const { id, api_key: key } = JSON.parse(stdout);
  const path = await create(clients[0]);
  const statusOn = async (client: Client) => (await client.request('GET', path, { key })).status;
  for (const client of clients) expect(await statusOn(client)).toBe(200);
  const polling = clients.map(async (client) => {
    await until('the key is refused', async () => (await statusOn(client)) === 401);
    return performance.now();
  });
  expect(await runBerth(['keys', 'revoke', id, '--yes', ...flags])).toMatchObject({ code: 0 });
  const revokedAt = performance.now();
  for (const refusedAt of await Promise.all(polling)) expect(refusedAt - revokedAt).toBeLessThan(5_000);
  await destroy(clients[0], path);
});

describe('when one of them', () => {
  it('is paused for a while, it answers nothing from before [replica-paused]', async () => {
    const [one, other] = clients;
    const path = await create(one);
    await other.waitFor(path, 'ONLINE');
    servers[1].child.kill('SIGSTOP');
    const stoppedAt = performance.now();
    await destroy(one, path);
    await until(
      'the pause is longer than cached states are valid',
      () => performance.now() > stoppedAt + 3_100,
    );
    const reply = other.request('GET', path);
    servers[1].child.kill('SIGCONT');
    expect((await reply).status).toBe(404);
  });

  it('is killed right after a 201, the other brings the instance up', async () => {
    const path = await create(clients[0]);
    await servers[0].end('SIGKILL');
    await clients[1].waitFor(path, 'ONLINE');
    await destroy(clients[1], path);
    servers[0] = await serve();
    clients[0] = createClient(servers[0].baseUrl, apiKey);
    expect((await clients[0].request('GET', path)).status).toBe(404);
  });

  it('is killed in the middle of a step, the other finishes it as soon as the lease has run out [replica-killed-in-step]', async () => {
    const { path, id, endedAt } = await endInCreate(async () => void (await servers[1].end('SIGKILL')));
    await until(
      'the other has finished it',
      async () => (await clients[0].request('GET', path)).body['status'] === 'ONLINE',
    );
    expect(performance.now() - endedAt).toBeLessThan(LEASE_MS + AFTER_LEASE_MS);
    expect(await machinesOf(id)).toBe(1);
    servers[1] = await serve();
    clients[1] = createClient(servers[1].baseUrl, apiKey);
    await destroy(clients[1], path);
    expect(await machinesOf(id)).toBe(0);
  });

  it('is paused in a step past its lease, the other finishes it, and what the first brings back is not written [replica-paused-past-lease]', async () => {
    const { path, id, endedAt } = await endInCreate(() => void servers[1].child.kill('SIGSTOP'));
    const [one, other] = clients;
    await until(
      'the other has finished it',
      async () => (await one.request('GET', path)).body['status'] === 'ONLINE',
    );
    expect(performance.now() - endedAt).toBeLessThan(LEASE_MS + AFTER_LEASE_MS);
    const before = await one.request('GET', path);
    servers[1].child.kill('SIGCONT');
    await until('the first comes back', () =>
      servers[1].stderr
        .split('\n')
        .some((line) => line.includes(id) && /its lease was lost|the lease was lost/.test(line)),
    );
    for (const client of [one, other]) {
      const after = await client.request('GET', path);
      expect([after.status, after.body, after.headers.get('etag')]).toEqual([
        ...[200, before.body, before.headers.get('etag')],
      ]);
    }
    expect(await machinesOf(id)).toBe(1);
    await destroy(one, path);
    expect(await machinesOf(id)).toBe(0);
  });

  it('loses every connection to the database, it is itself again soon [replica-loses-connections]', async () => {
    const path = await create(clients[0]);
    await postgres.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'berth%' AND datname = current_database()`,
      database,
    );
    const answers: number[] = [];
    await until('it is up everywhere', async () => {
      const replies = await Promise.all(clients.map((client) => client.request('GET', path)));
      answers.push(...replies.map(({ status }) => status));
      return replies.every(({ body }) => body['status'] === 'ONLINE');
    });
    expect(answers).not.toContain(404);
    await destroy(clients[0], path);
  });
});
