import { existsSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestSecret } from '../../src/keys/api-key.ts';
import { setPassword } from '../../src/orchestrator/accounts/accounts.ts';
import { type Store, StoreUnavailable, type Transaction } from '../../src/orchestrator/model/store.ts';
import { createLog } from '../../src/runtime/log.ts';
import { systemClock, systemRandom } from '../../src/runtime/system.ts';
import { until } from '../support/http/http-client.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const CANARY = 'cAnArY';
const secret = (what: string): string => `${CANARY}-${what}-0123456789`;
const PRIVATE_KEY = `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret('private-key')}\n-----END OPENSSH PRIVATE KEY-----\n`;
const PASSWORD = secret('password');
const ENVIRONMENT_KEY = secret('environment-key');

/** A create that has a secret wherever one can be. */
const secretive = (overrides: Record<string, unknown> = {}) =>
  instanceRequest({
    cloud_init: {
      runcmd: [`curl -H 'Authorization: ${secret('runcmd')}' https://example.test`],
      write_files: [{ path: '/root/.env', content: `TOKEN=${secret('content')}\n`, permissions: '0600' }],
    },
    ...overrides,
  });

type Failure = 'none' | 'quotes' | 'quotes in a cause' | 'refuses' | 'unavailable';

let orchestrator: TestOrchestrator;
let failure: Failure;
let logged: string;
let replied: string;
let tokens: string[];

/** What a library throws that puts the parameters of a statement into its message, and into itself. */
class QueryError extends Error {
  override readonly name = 'QueryError';
  readonly params: unknown;
  constructor(params: unknown, options?: ErrorOptions) {
    super(`Failed query: insert into "instances" … params: ${JSON.stringify(params)}`, options);
    this.params = params;
  }
}

/** A store whose writes of instances fail as a test asks for. */
function failing(store: Store): Store {
  const throwing = (params: unknown): never => {
    const quoting = new QueryError(params);
    if (failure === 'quotes in a cause')
      throw new Error('the write failed', { cause: new QueryError(params, { cause: quoting }) });
    if (failure === 'unavailable')
      throw new StoreUnavailable('SQLITE_FULL: disk is full', { cause: quoting });
    if (failure === 'refuses') throw params;
    throw quoting;
  };
  return {
    ...store,
    transact: (body) =>
      store.transact((tx: Transaction) =>
        body({
          ...tx,
          instances: {
            ...tx.instances,
            insert: (record) => (failure === 'none' ? tx.instances.insert(record) : throwing(record)),
          },
          credentials: {
            ...tx.credentials,
            insertToken: (record) =>
              failure === 'none' ? tx.credentials.insertToken(record) : throwing(record),
          },
        }),
      ),
  };
}

beforeEach(async () => {
  failure = 'none';
  logged = '';
  replied = '';
  tokens = [];
  const environmentKey = { digest: digestSecret(ENVIRONMENT_KEY), accountId: '' };
  orchestrator = await startTestOrchestrator({
    log: createLog('trace', { write }),
    wrapStore: failing,
    environmentKey,
    rateLimits: {},
  });
  environmentKey.accountId = orchestrator.account.id;
  await setPassword(
    { store: orchestrator.store, clock: systemClock, random: systemRandom },
    'default',
    PASSWORD,
  );
});
afterEach(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

function write(line: string): void {
  logged += line;
}

async function ask(method: string, path: string, body?: unknown, key: string | null = ENVIRONMENT_KEY) {
  const reply = await orchestrator.request(method, path, { key, body });
  replied += `${reply.text}${JSON.stringify([...reply.headers])}`;
  return reply;
}

/** A token may appear only in the reply to the request that bought it. */
async function buy(body: unknown): Promise<number> {
  const reply = await orchestrator.request('POST', '/auth/token', { key: null, body });
  const token = reply.body['access_token'];
  if (typeof token === 'string') tokens.push(token);
  else replied += reply.text;
  return reply.status;
}

async function expectNoSecret(): Promise<void> {
  const metrics = await (await orchestrator.admin.fetch('/metrics')).text();
  for (const [where, text] of Object.entries({ logged, replied, metrics })) {
    for (const known of [CANARY, orchestrator.key, ENVIRONMENT_KEY, PASSWORD, ...tokens])
      expect([where, text.includes(known)]).toEqual([where, false]);
    for (const known of [PASSWORD, secret('content')])
      expect([where, text.includes(Buffer.from(known).toString('base64').slice(0, 20))]).toEqual([
        where,
        false,
      ]);
  }
  expect(logged.split('\n').length).toBeGreaterThan(2);
}

it('tells no secret while all goes well [no-secret-in-success]', async () => {
  const { status, body } = await ask('POST', '/instances', secretive());
  expect(status).toBe(201);
  await orchestrator.waitFor(String(body['id']), 'ONLINE');
  expect(await buy({ api_key: ENVIRONMENT_KEY })).toBe(200);
  expect(await buy({ username: 'default', password: PASSWORD })).toBe(200);
  for (const token of tokens)
    expect((await ask('GET', `/instances/${body['id']}`, undefined, token)).status).toBe(200);
  await ask('GET', '/instances');
  await ask('DELETE', `/instances/${body['id']}`);
  await orchestrator.waitFor(String(body['id']), 'GONE');
  await expectNoSecret();
});

it('tells no secret in a refusal [no-secret-in-refusal]', async () => {
  for (const body of [
    secretive({ ssh_keys: [PRIVATE_KEY] }),
    secretive({ ssh_keys: [secret('key')] }),
    secretive({ region: 'nowhere' }),
    secretive({ name: 7, configuration_id: secret('offer') }),
    secretive({ configuration_id: 'a40-1x' }),
    secretive({ region: 'ap-singapore' }),
    secretive({
      cloud_init: { runcmd: secret('string'), write_files: [{ path: secret('path'), content: 5 }] },
    }),
    `{"cloud_init": {"runcmd": ["${secret('cut-off')}"`,
    `${secret('no-json')}`,
    `{"x": "${secret('large').repeat(60_000)}"}`,
  ])
    expect((await ask('POST', '/instances', body)).status).toBeGreaterThanOrEqual(400);
  for (const key of [secret('wrong-key'), `${secret('spaced')} key`])
    expect((await ask('GET', '/instances', undefined, key)).status).toBe(401);
  expect(await buy({ api_key: secret('wrong-key') })).toBe(401);
  expect(await buy({ username: secret('user'), password: secret('wrong') })).toBe(401);
  expect(await buy({ username: 'default', password: [PASSWORD] })).toBe(400);
  expect(await buy({ api_key: secret('key'), password: PASSWORD })).toBe(400);
  await expectNoSecret();
});

it('tells no secret below HTTP [no-secret-below-http]', async () => {
  await using server = await startServer(orchestrator);
  for (const bytes of [
    `GET /v1/x HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer ${secret('header')}\r\n\r\n`,
    `GET /v1/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret('long').repeat(2_000)}\r\n\r\n`,
    `GET /v1/x?api_key=${secret('query')} HTTP/1.1\r\nHost: a/b\r\nAuthorization: Bearer ${secret('header')}\r\n\r\n`,
    `GET /v1/instances?api_key=${secret('query')} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${secret('basic')}\r\n\r\n`,
    `${secret('noise')}\r\n\r\n`,
  ]) {
    await using client = await WireClient.open(server.port);
    client.send(bytes);
    const reply = await client.reply();
    expect(reply?.status).toBeGreaterThanOrEqual(400);
    replied += `${reply?.body}${reply?.rawHeaders}`;
  }
  await expectNoSecret();
});

const PINO_WARN = 40;
const PINO_ERROR = 50;

describe('tells no secret when the store throws [no-secret-store-throws]', () => {
  it.each<[Failure, number]>([
    ['quotes', 500],
    ['quotes in a cause', 500],
    ['unavailable', 503],
  ])('%s: %i, and the log says where', async (kind, status) => {
    failure = kind;
    expect((await ask('POST', '/instances', secretive())).status).toBe(status);
    expect(await buy({ api_key: ENVIRONMENT_KEY })).toBe(status);
    expect(await buy({ username: 'default', password: PASSWORD })).toBe(status);
    await expectNoSecret();
    const lines = logged.split('\n').filter((line) => line.includes('request failed'));
    expect(lines).toHaveLength(3);
    for (const line of lines) {
      const { err, level, request_id } = JSON.parse(line);
      expect(level).toBe(status === 500 ? PINO_ERROR : PINO_WARN);
      expect(err.stack.join('\n')).toContain('secrets.integration.test.ts');
      expect(err.type).toMatch(/Error|StoreUnavailable/);
      expect(request_id).toBeTruthy();
    }
  });

  it('a parameter of a real statement that SQLite refuses', async () => {
    const { store } = orchestrator;
    const refused = store.transact(async (tx) => {
      await tx.credentials.insertAccount({
        id: secret('id'),
        name: 'default',
        passwordHash: secret('hash'),
        createdAt: 0,
      });
    });
    const error = await refused.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(`${String(error)} ${JSON.stringify(error)} ${(error as Error).stack}`).not.toContain(CANARY);
  });
});

it('says in the log what SQLite said', async () => {
  await orchestrator.store.close();
  expect((await ask('GET', '/instances')).status).toBe(503);
  expect(logged).toContain('closed: The database connection is not open');
});

describe('cloud_init in the database [cloud-init-at-rest]', () => {
  /** Every byte of the database's files, what is left in free pages included. */
  function bytesOf({ databasePath }: TestOrchestrator): Buffer {
    const db = new Database(databasePath);
    db.pragma('wal_checkpoint(TRUNCATE)');
    db.close();
    // Beside these, the simulator keeps its machines, with what is on their disks.
    const files = [databasePath, `${databasePath}-wal`, `${databasePath}-shm`].filter(existsSync);
    return Buffer.concat(files.map((file) => readFileSync(file)));
  }

  it('is gone once the instance is ONLINE', async () => {
    const body = secretive({
      cloud_init: { runcmd: Array.from({ length: 50 }, () => secret('runcmd').repeat(20)) },
    });
    const created = await ask('POST', '/instances', body);
    await orchestrator.waitFor(String(created.body['id']), 'ONLINE');
    expect(bytesOf(orchestrator).includes(CANARY)).toBe(false);
  });

  it('is gone once an instance that never came to be is destroyed', async () => {
    const created = await ask('POST', '/instances', secretive());
    const id = String(created.body['id']);
    await ask('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    await until(
      async () => (await orchestrator.store.read.work.of(id)) === null,
      () => 'its work is not over',
    );
    expect(bytesOf(orchestrator).includes(CANARY)).toBe(false);
  });
});
