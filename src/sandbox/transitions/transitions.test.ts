import { expect, it } from 'vitest';
import { benchOf, startBench } from '../faults/bench.fixture.ts';

it('finishes a transition at once, after polls, or on request', async () => {
  await using sandbox = await startBench();
  const { order, pass, read, until } = await benchOf(sandbox);
  sandbox.transitions.set({ mode: 'manual', phase: 'boot' });
  const { body: held } = await order('held');
  await pass(60);
  expect((await read(held.id)).body.status).toBe('PROVISIONING');
  expect(sandbox.transitions.held()).toMatchObject([{ instance: held.id, phase: 'boot' }]);
  expect(sandbox.transitions.finish({ instance: held.id })).toBe(1);
  await until(held.id, 'ONLINE', 10);

  sandbox.transitions.set({ mode: 'polls', polls: 3 });
  const { body: polled } = await order('polled');
  await pass(60);
  for (let poll = 0; poll < 3; poll++) expect((await read(polled.id)).body.status).toBe('PROVISIONING');
  await pass(5);
  expect((await read(polled.id)).body.status).toBe('ONLINE');
});

it('finishes a transition at once, or after a time, for a provider, an account, a phase or an instance', async () => {
  await using sandbox = await startBench();
  const { account, ask, order, pass, read } = await benchOf(sandbox);
  const statusOf = async (id: string) => (await read(id)).body.status;
  sandbox.transitions.set({ mode: 'immediate', account });
  const { id } = (await order('at-once')).body;
  await pass(0);
  expect(await statusOf(id)).toBe('ONLINE');

  sandbox.transitions.set({ mode: 'timed', ms: 40_000, phase: 'stop', provider: 'd' });
  await ask('POST', `/instances/${id}/stop`);
  await pass(39);
  expect(await statusOf(id)).toBe('STOPPING');
  await pass(5);
  expect(await statusOf(id)).toBe('STOPPED');

  sandbox.transitions.set({ mode: 'timed', ms: 60_000, instance: id });
  await ask('POST', `/instances/${id}/start`);
  const other = (await order('other')).body;
  await pass(30);
  expect([await statusOf(id), await statusOf(other.id)]).toEqual(['STOPPED', 'ONLINE']);
  await pass(35);
  expect(await statusOf(id)).toBe('ONLINE');

  sandbox.transitions.set({ mode: 'usual' });
  await ask('DELETE', `/instances/${id}`);
  await pass(0);
  expect(await statusOf(id)).toBe('DESTROYING');
  await pass(10);
  expect((await read(id)).status).toBe(404);
});
