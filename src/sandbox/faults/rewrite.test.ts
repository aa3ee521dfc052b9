import { expect, it } from 'vitest';
import { benchOf, startBench } from './bench.fixture.ts';

it('leaves an answer without a body as it is, or breaks the connection', async () => {
  await using sandbox = await startBench();
  const { makeVolume, pass, send } = await benchOf(sandbox);
  for (const fault of ['wrong-content-type', 'truncated-json', 'half-body-silence', 'slow-body'] as const) {
    const id = await makeVolume();
    await sandbox.faults.arm(fault, { route: 'DELETE /volumes/{id}' });
    const answer = await send('DELETE', `/volumes/${id}`);
    expect([fault, answer.status, await answer.text()]).toEqual([fault, 204, '']);
  }
  const id = await makeVolume();
  await sandbox.faults.arm('half-body-reset', { route: 'DELETE /volumes/{id}' });
  await expect(send('DELETE', `/volumes/${id}`)).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
  await pass(5);
  expect((await send('GET', `/volumes/${id}`)).status).toBe(404);
});

it('leaves a create that cannot be read to the server, where all is sold out', async () => {
  await using sandbox = await startBench();
  const { ask, send } = await benchOf(sandbox);
  await sandbox.faults.arm('sold-out');
  expect((await ask('POST', '/instances', null)).status).toBe(400);
  expect((await send('POST', '/instances')).status).toBe(400);
});
