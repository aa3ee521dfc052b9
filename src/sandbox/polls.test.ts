import { expect, it } from 'vitest';
import { benchOf, startBench } from './faults/bench.fixture.ts';

it('answers a poll from the prepared body like one through the app, and the journal has both', async () => {
  await using sandbox = await startBench();
  const { make, read, pass, baseUrl, apiKey } = await benchOf(sandbox);
  const id = await make();
  // After a second the key is checked again, by the app.
  await pass(3);
  const [checked, prepared] = [await read(id), await read(id)];
  const headersOf = ({ headers }: typeof checked) =>
    [...headers].filter(([name]) => !['x-request-id', 'content-length'].includes(name)).sort();
  expect(prepared).toMatchObject({ status: 200, text: checked.text });
  expect(headersOf(prepared)).toEqual(headersOf(checked));
  expect(prepared.headers.get('x-request-id')).not.toBe(checked.headers.get('x-request-id'));
  // Only the answer from the prepared body has a length.
  expect([checked, prepared].map(({ headers }) => headers.has('content-length'))).toEqual([false, true]);

  const etag = prepared.headers.get('etag') ?? '';
  const unchanged = await sandbox.fetch(`${baseUrl}/instances/${id}`, {
    headers: { authorization: `Bearer ${apiKey}`, 'if-none-match': etag },
  });
  expect([unchanged.status, await unchanged.text()]).toEqual([304, '']);

  const entries = await sandbox.control.journal.entries({ operation: 'getInstance', limit: 3 });
  expect(entries).toMatchObject([
    { status: 200, response: { headers: { etag }, body: { id, status: 'ONLINE' } } },
    { status: 200, response: { headers: { etag }, body: { id, status: 'ONLINE' } } },
    { status: 304, request: { headers: { 'if-none-match': etag } } },
  ]);
  expect(entries[2]?.response.body).toBeUndefined();
});

it('does not answer a poll of another account, or with an unknown key', async () => {
  await using sandbox = await startBench();
  const { make } = await benchOf(sandbox);
  const other = await benchOf(sandbox);
  const id = await make();
  await other.ask('GET', '/instances');
  expect((await other.read(id)).status).toBe(404);
  const unknown = await sandbox.fetch(`${other.baseUrl}/instances/${id}`, {
    headers: { authorization: `Bearer ${other.apiKey}x` },
  });
  expect(unknown.status).toBe(401);
});
