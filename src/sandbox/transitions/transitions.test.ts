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

it('finishes a transition at once, or after a time, for a provider, a phase or an instance', async () => {
  await using sandbox = await startBench();
  const { ask, order, pass, read } = await benchOf(sandbox);
  const statusOf = async (id: string) => (await read(id)).body.status;
  sandbox.transitions.set({ mode: 'immediate' });
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

it('finishes each transition of a volume at once, after a time, after polls, or on request', async () => {
  await using sandbox = await startBench();
  const { ask, make, makeVolume, pass } = await benchOf(sandbox);
  const { transitions } = sandbox.control;
  const one = await make('one');
  const two = await make('two');
  await transitions.set({ mode: 'manual', phase: 'volumes.create' });
  const id = await makeVolume();
  const shown = async () => (await ask('GET', `/volumes/${id}`)).body;
  const status = async () => (await shown()).status;
  await pass(60);
  expect(await status()).toBe('CREATING');
  expect((await transitions.show()).held).toMatchObject([{ volume: id, phase: 'volumes.create' }]);
  expect(await transitions.finish({ volume: 'another' })).toBe(0);
  expect(await transitions.finish({ volume: id })).toBe(1);
  await pass(2);
  expect(await status()).toBe('AVAILABLE');

  await transitions.set({ mode: 'timed', ms: 30_000, phase: 'volumes.attach', volume: id });
  await ask('POST', `/volumes/${id}/attach`, { instance_ids: [one] });
  await pass(28);
  expect(await status()).toBe('ATTACHING');
  await pass(5);
  expect(await shown()).toMatchObject({ status: 'ATTACHED', attached_instance_ids: [one] });

  await transitions.set({ mode: 'immediate', provider: 'd' });
  await ask('POST', `/volumes/${id}/detach`, {});
  await pass(0);
  expect(await status()).toBe('AVAILABLE');

  await transitions.set({ mode: 'polls', polls: 2, phase: 'volumes.destroy' });
  await transitions.set({ mode: 'manual', instance: two });
  await ask('POST', `/volumes/${id}/attach`, { instance_ids: [two] });
  await pass(1);
  expect(await status()).toBe('ATTACHED');
  await ask('POST', `/volumes/${id}/detach`, {});
  await pass(1);
  await ask('DELETE', `/volumes/${id}`);
  await pass(60);
  expect(await status()).toBe('DELETING');
  expect(await status()).toBe('DELETING');
  await pass(2);
  expect((await ask('GET', `/volumes/${id}`)).status).toBe(404);
});

it('grows a volume after a time, and takes the times of each transition from the options', async () => {
  await using sandbox = await startBench({
    timing: { 'volumes.create': '40s', 'volumes.destroy': 0 },
  });
  const { ask, pass } = await benchOf(sandbox, 'e');
  const order = { name: 'data', size_gb: 20, region: 'eu-frankfurt' };
  const { id } = (await ask('POST', '/volumes', order)).body;
  const shown = async () => (await ask('GET', `/volumes/${id}`)).body;
  await pass(39);
  expect((await shown()).status).toBe('CREATING');
  await pass(3);
  expect((await shown()).status).toBe('AVAILABLE');
  sandbox.transitions.set({ mode: 'timed', ms: 50_000, phase: 'volumes.resize' });
  await ask('POST', `/x/volumes/${id}/resize`, { size_gb: 40 });
  await pass(48);
  expect(await shown()).toMatchObject({ size_gb: 20 });
  await pass(5);
  expect(await shown()).toMatchObject({ size_gb: 40 });
  await ask('DELETE', `/volumes/${id}`);
  await pass(1);
  expect((await ask('GET', `/volumes/${id}`)).status).toBe(404);
});
