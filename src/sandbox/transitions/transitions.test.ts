import { expect, it } from 'vitest';
import { benchOf, startBench } from '../faults/bench.fixture.ts';

it('ends a transition at once, after polls, or when somebody says so', async () => {
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
