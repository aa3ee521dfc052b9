import { describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { Client, ClientReply } from '../support/http/http-client.ts';
import { MortalServer, watchFor404 } from '../support/processes/mortal-server.ts';

const SCARCE = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' };
const SCARCE_UNITS = 3;

type Send = (client: Client) => Promise<ClientReply>;

function creation(idempotencyKey: string): Send {
  const body = { ...SCARCE, ssh_keys: [newPublicKey()] };
  const headers = { 'Idempotency-Key': idempotencyKey };
  return (client) => client.request('POST', '/instances', { body, headers });
}

/** An operation, and what a restart must make of it. */
interface Operation {
  kind: string;
  /** The moments at which the process dies; a number says at which time that it is reached. */
  moments: readonly string[];
  from: 'none' | 'ONLINE' | 'STOPPED';
  method: 'POST' | 'DELETE';
  /** Before and behind the path of the instance. */
  root?: '/x';
  verb: string;
  to: 'ONLINE' | 'STOPPED' | 'GONE';
}

const step = ['before-call', 'after-call', 'settled'];
// The first call of a step finds the platform at work, the second one finds it done.
const all = ['before-commit', 'after-commit', ...step, 'after-call 2', 'settled 2'];
/** Long enough that the first call never finds the platform done. */
const STEP_MS = 250;
const operations: Operation[] = [
  { kind: 'create', moments: all, from: 'none', method: 'POST', verb: '', to: 'ONLINE' },
  { kind: 'verify', moments: step, from: 'none', method: 'POST', verb: '', to: 'ONLINE' },
  { kind: 'stop', moments: all, from: 'ONLINE', method: 'POST', verb: '/stop', to: 'STOPPED' },
  { kind: 'start', moments: all, from: 'STOPPED', method: 'POST', verb: '/start', to: 'ONLINE' },
  {
    kind: 'restart',
    moments: all,
    from: 'ONLINE',
    method: 'POST',
    root: '/x',
    verb: '/restart',
    to: 'ONLINE',
  },
  { kind: 'destroy', moments: all, from: 'ONLINE', method: 'DELETE', verb: '', to: 'GONE' },
];

/** Makes an instance and brings it to the state that an operation begins in; returns its path. */
async function prepare(server: MortalServer, { from }: Operation, send: Send): Promise<string> {
  const { client } = server;
  const { status, body } = await send(client);
  expect(status).toBe(201);
  const path = `/instances/${body['id']}`;
  await client.waitFor(path, 'ONLINE');
  if (from === 'STOPPED') {
    await client.request('POST', `${path}/stop`);
    await client.waitFor(path, 'STOPPED');
  }
  await server.expectOrder();
  return path;
}

/** The operation on an instance that is not there yet; returns its path. */
async function dieCreating(server: MortalServer, send: Send, die: () => Promise<void>): Promise<string> {
  const lost = send(server.client).catch(() => undefined);
  await die();
  const [first, again] = [await lost, await server.insist(send)];
  expect(again.status).toBe(201);
  if (first !== undefined) expect(again.body['id']).toBe(first.body['id']);
  return `/instances/${again.body['id']}`;
}

/** The operation on an instance that is there, which must never read 404 unless it is deleted. */
async function dieOperating(
  server: MortalServer,
  { method, root, verb, to }: Operation,
  path: string,
  die: () => Promise<void>,
): Promise<void> {
  const send: Send = (client) => client.request(method, `${root ?? ''}${path}${verb}`);
  const watch = watchFor404(server, path);
  const lost = send(server.client).catch(() => undefined);
  await die();
  await lost;
  await server.insist(send);
  await server.client.waitFor(path, to);
  const count = await watch.stop();
  if (to !== 'GONE') expect(count).toBe(0);
}

async function dieAt(server: MortalServer, operation: Operation, moment: string): Promise<void> {
  const { kind, from, to } = operation;
  const [name = '', hit = '1'] = moment.split(' ');
  const failpoint = { name: `${kind}:${name}`, hit: Number(hit) };
  const send = creation(`${kind}-${name}-${hit}`);
  const prepared = from === 'none' ? '' : await prepare(server, operation, send);
  await server.arm(failpoint);
  const die = async (): Promise<void> => {
    await server.died(failpoint);
    await server.start();
  };
  if (from !== 'none') await dieOperating(server, operation, prepared, die);
  const path = from === 'none' ? await dieCreating(server, send, die) : prepared;
  const found = await server.client.waitFor(path, to);
  if (to !== 'GONE') expect(found).toMatchObject({ id: path.split('/')[2], status: to });
  await server.expectOrder();

  await server.client.request('DELETE', path);
  await server.client.waitFor(path, 'GONE');
  await server.expectOrder();
  const rows = server.ledger().instances.filter(({ status }) => status !== 'DESTROYED');
  expect(rows).toHaveLength(1);
}

describe.concurrent('kill -9 at each moment, and a restart, end as without them [kill-at-each-step]', () => {
  it.each(operations)('$kind', async (operation) => {
    await using server = new MortalServer({ stepMs: STEP_MS });
    await server.start();
    /** Holds one unit of the three all the time. */
    const neighbour = await creation('neighbour')(server.client);
    await server.client.waitFor(`/instances/${neighbour.body['id']}`, 'ONLINE');

    for (const moment of operation.moments)
      await dieAt(server, operation, moment).catch((error) => {
        throw new Error(`killed at ${operation.kind}:${moment}: ${error.message}`, { cause: error });
      });

    const sends = Array.from({ length: SCARCE_UNITS }, (_, index) => creation(`more-${index}`));
    const more = await Promise.all(sends.map((send) => send(server.client)));
    expect(more.map(({ status }) => status).sort()).toEqual([201, 201, 409]);
    const { body } = await server.client.request('GET', `/instances/${neighbour.body['id']}`);
    expect(body).toMatchObject({ status: 'ONLINE' });
  });
});
