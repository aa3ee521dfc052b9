import { expect, it } from 'vitest';
import type { Failpoint } from '../../support/processes/serve-with-failpoint.ts';
import { nameOf } from '../lab-server.ts';
import { serveEachTest } from './serving.ts';

const lab = serveEachTest();

const moment = (text: string): Failpoint => {
  const [name = '', hit = '1'] = text.split(' ');
  return { name, hit: Number(hit) };
};

/** The server dies before and after the request is taken, then in life after life at each of `moments`. */
async function dieAt(kind: string, moments: readonly string[], send: () => Promise<unknown>): Promise<void> {
  const { server } = lab;
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

/** Each moment that a step has, at each of its calls that leave the platform otherwise than it was. */
const steps = (kind: string, calls: number): string[] => [
  `${kind}:before-call`,
  ...Array.from({ length: calls }, () => [`${kind}:after-call`, `${kind}:settled`]).flat(),
];

it('goes on after kill -9 at each moment of a create, stop, start, restart and destroy [libvirt-kill-at-each-step]', {
  timeout: 15 * 60_000,
}, async () => {
  const { server, host } = lab;
  const headers = { 'Idempotency-Key': 'the-one' };
  const create = () => server.client.request('POST', '/instances', { headers, body: lab.request() });
  // The claim, the disk, the power; each is a call.
  await dieAt(
    'create',
    [...steps('create', 2), 'verify:before-call', 'verify:after-call', 'verify:settled'],
    create,
  );
  const { status, body } = await create();
  expect(status).toBe(201);
  const path = `/instances/${body['id']}`;
  await lab.online(path);
  const isOne = () => expect(host.contents().filter((one) => one === nameOf(path))).toHaveLength(1);
  isOne();

  await dieAt('stop', steps('stop', 1), () => server.client.request('POST', `${path}/stop`));
  await server.client.waitFor(path, 'STOPPED');
  isOne();
  await dieAt('start', steps('start', 1), () => server.client.request('POST', `${path}/start`));
  const started = await lab.online(path);
  isOne();
  await dieAt('restart', steps('restart', 2), () => server.client.request('POST', `/x${path}/restart`));
  await server.client.waitFor(path, 'ONLINE');
  await expect.poll(async () => (await lab.login(started, 'echo it is back')).stdout).toBe('it is back\n');
  isOne();
  await dieAt('destroy', steps('destroy', 1), () => server.client.request('DELETE', path));
  await server.client.waitFor(path, 'GONE');
  await lab.nothingIsLeft();
});
