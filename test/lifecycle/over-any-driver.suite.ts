import { expect } from 'vitest';
import type { Failpoint } from '../support/processes/serve-with-failpoint.ts';
import type { ServerLives } from '../support/processes/server-lives.ts';

/** A server over a platform whose driver is under test, and the calls of a step that leave the platform otherwise than it was. */
interface Stage {
  server: ServerLives;
  /** What a create asks for. */
  request: object;
  /** The owner refs of all machines that the platform has. */
  machines(): string[] | Promise<string[]>;
  /** Whether the machine lets in who owns it. */
  letsIn(machine: Record<string, unknown>): Promise<boolean>;
  calls: { create: number; restart: number };
}

const moment = (text: string): Failpoint => {
  const [name = '', hit = '1'] = text.split(' ');
  return { name, hit: Number(hit) };
};

/** Each moment that a step has, at each of its calls. */
const steps = (kind: string, calls: number): string[] => [
  `${kind}:before-call`,
  ...Array.from({ length: calls }, () => [`${kind}:after-call`, `${kind}:settled`]).flat(),
];

/** The server dies before and after the request is taken, then in life after life at each of `moments`. */
async function dieAt(
  server: ServerLives,
  kind: string,
  moments: readonly string[],
  send: () => Promise<unknown>,
): Promise<void> {
  for (const around of ['before-commit', 'after-commit']) {
    const failpoint = moment(`${kind}:${around}`);
    await server.arm(failpoint);
    const lost = send().catch(() => undefined);
    await server.died(failpoint);
    await lost;
    if (around === 'before-commit') await server.start();
  }
  for (const text of moments) await server.liveUntil(moment(text));
  await server.start();
}

/** A machine's whole life, with kill -9 of the server at each moment of each step: it is made once, kept, and removed. */
export async function liveThroughKills({ server, request, machines, letsIn, calls }: Stage): Promise<void> {
  const headers = { 'Idempotency-Key': 'the-one' };
  const create = () => server.client.request('POST', '/instances', { headers, body: request });
  const verify = ['verify:before-call', 'verify:after-call', 'verify:settled'];
  await dieAt(server, 'create', [...steps('create', calls.create), ...verify], create);
  const { status, body } = await create();
  expect(status).toBe(201);
  const path = `/instances/${body['id']}`;
  await server.client.waitFor(path, 'ONLINE');
  const isOne = async () => expect(await machines()).toEqual([`berth-${body['id']}`]);
  await isOne();
  const post = (at: string) => () => server.client.request('POST', at);
  await dieAt(server, 'stop', steps('stop', 1), post(`${path}/stop`));
  await server.client.waitFor(path, 'STOPPED');
  await isOne();
  await dieAt(server, 'start', steps('start', 1), post(`${path}/start`));
  const started = await server.client.waitFor(path, 'ONLINE');
  await isOne();
  if (calls.restart > 0) {
    await dieAt(server, 'restart', steps('restart', calls.restart), post(`/x${path}/restart`));
    await server.client.waitFor(path, 'ONLINE');
    await expect.poll(() => letsIn(started)).toBe(true);
    await isOne();
  }
  await dieAt(server, 'destroy', steps('destroy', 1), () => server.client.request('DELETE', path));
  await server.client.waitFor(path, 'GONE');
  await expect.poll(machines).toEqual([]);
}
