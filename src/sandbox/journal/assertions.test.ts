import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import { benchOf, SSH_KEY, startBench } from '../faults/bench.fixture.ts';
import { type Assertion, assertionSchema, checkAssertion } from './assertions.ts';
import { type JournalEntry, journalEntrySchema } from './entry.ts';

/** Creates entries of provider-a at the given seconds. */
function entries(...lines: [seconds: number, entry: Partial<JournalEntry>][]): JournalEntry[] {
  return lines.map(([seconds, entry], index) =>
    journalEntrySchema.parse({
      number: index + 1,
      at: new Date(seconds * 1000).toISOString(),
      provider: 'provider-a',
      method: 'GET',
      path: '/v1/instances/i-1',
      request: { headers: {} },
      status: 200,
      response: { headers: {} },
      duration_ms: 0,
      ...entry,
    }),
  );
}

const check = (assertion: Assertion, from: JournalEntry[], nowSeconds: number) =>
  checkAssertion(assertionSchema.parse(assertion), from, nowSeconds * 1000);

const create = (resource: string, body: object = { name: 'demo' }): Partial<JournalEntry> => ({
  method: 'POST',
  operation: 'createInstance',
  status: 201,
  resource,
  request: { headers: {}, body },
});
const read = (status = 'ONLINE'): Partial<JournalEntry> => ({
  operation: 'getInstance',
  resource: 'i-1',
  response: { headers: {}, body: { status } },
});
const gone: Partial<JournalEntry> = { ...read(), status: 404 };
const destroy: Partial<JournalEntry> = {
  method: 'DELETE',
  operation: 'destroyInstance',
  resource: 'i-1',
  status: 200,
};

describe('polled_at_least_every', () => {
  const every30 = { assert: 'polled_at_least_every', seconds: 30 } as const;

  it('holds for a client that polls from the create to the end', () => {
    const life = entries(
      [0, create('i-1')],
      [25, read('PROVISIONING')],
      [55, read()],
      [60, destroy],
      [85, gone],
    );
    expect(check(every30, life, 9_999)).toMatchObject({ holds: true, entries: [] });
  });

  it('names the gap', () => {
    const life = entries([0, create('i-1')], [31, read()], [40, gone]);
    expect(check(every30, life, 40)).toEqual({
      assert: 'polled_at_least_every',
      holds: false,
      message: 'i-1 was not read for 31 s',
      entries: [1, 2],
    });
  });

  it('names an instance that is no longer polled and never ended', () => {
    const life = entries([0, create('i-1')], [20, read()]);
    expect(check(every30, life, 50)).toMatchObject({ holds: true });
    expect(check(every30, life, 51)).toMatchObject({ message: 'i-1 was not read for 31 s, until now' });
    const ended = entries([0, create('i-1')], [20, read('ERROR')]);
    expect(check(every30, ended, 999)).toMatchObject({ holds: true });
  });

  it('begins after the answer, and after the time that Retry-After asked for', () => {
    const hung = { ...read(), status: null, duration_ms: 20_000 };
    expect(check(every30, entries([0, read()], [10, hung], [60, gone]), 60)).toMatchObject({ holds: true });
    const busy = { ...read(), status: 429, response: { headers: { 'retry-after': '60' } } };
    expect(check(every30, entries([0, read()], [10, busy], [100, gone]), 100)).toMatchObject({ holds: true });
    expect(check(every30, entries([0, read()], [10, busy], [101, gone]), 101)).toMatchObject({
      message: 'i-1 was not read for 31 s',
    });
  });

  it('begins when the client knows of it', () => {
    const lost = {
      ...create('i-1'),
      status: null,
      resource: undefined,
      server: { status: 201, resource: 'i-1' },
    };
    expect(check(every30, entries([0, lost]), 999)).toMatchObject({ holds: true });
  });
});

it('polled_at_most_every names two reads that are too near', () => {
  const life = entries([0, read()], [10, read()], [14, read()]);
  expect(check({ assert: 'polled_at_most_every', seconds: 10 }, life, 20)).toMatchObject({
    holds: false,
    entries: [2, 3],
    message: 'i-1 was read twice within 4 s',
  });
  expect(check({ assert: 'polled_at_most_every', seconds: 4 }, life, 20)).toMatchObject({ holds: true });
});

describe('never_created_twice', () => {
  const once = { assert: 'never_created_twice' } as const;

  it('names a create that was repeated because its answer was lost', () => {
    const lost = {
      ...create('i-1'),
      status: null,
      resource: undefined,
      server: { status: 201, resource: 'i-1' },
    };
    expect(check(once, entries([0, lost], [5, create('i-2')]), 9)).toMatchObject({
      holds: false,
      entries: [1, 2],
      message: 'the same create made i-1 and i-2',
    });
  });

  it('holds for a replay, another name, another body, another account, and one that made nothing', () => {
    const replayed = {
      ...create('i-1'),
      response: { headers: { 'idempotent-replayed': 'true' }, body: { id: 'i-1' } },
    };
    const refused = { ...create('i-1'), status: 409, resource: undefined };
    const all = entries(
      [0, create('i-1')],
      [1, replayed],
      [2, refused],
      [3, create('i-3', { name: 'other' })],
      [4, create('i-4', { region: 'eu' })],
      [5, create('i-5', { region: 'us' })],
      [6, { ...create('i-6'), account: 'other' }],
    );
    expect(check(once, all, 9)).toMatchObject({ holds: true });
  });
});

it('never_created_twice holds for a create after the end of the one before', () => {
  const twice = (...between: Partial<JournalEntry>[]) => {
    const all = [create('i-1'), ...between, create('i-2')];
    return check(
      { assert: 'never_created_twice' },
      entries(...all.map((one) => [0, one] as [0, typeof one])),
      0,
    );
  };
  for (const end of [destroy, gone, read('ERROR')]) expect(twice(end)).toMatchObject({ holds: true });
  for (const other of [read(), { ...destroy, status: 409 }])
    expect(twice(other)).toMatchObject({ holds: false });
});

it('all_destroyed holds for a deleted volume, and for what ended by itself', () => {
  const made = { ...create('v-1'), operation: 'createVolume' };
  const deleted = { method: 'DELETE', operation: 'deleteVolume', resource: 'v-1' };
  const all = { assert: 'all_destroyed' } as const;
  expect(check(all, entries([0, made], [1, { ...deleted, status: 204 }]), 9)).toMatchObject({ holds: true });
  expect(check(all, entries([0, made], [1, { ...deleted, status: 409 }]), 9)).toMatchObject({ holds: false });
  expect(check(all, entries([0, create('i-1')], [1, gone]), 9)).toMatchObject({ holds: true });
});

it('all_destroyed names resources that were left behind', () => {
  const all = entries([0, create('i-1')], [1, create('i-2', { name: 'b' })], [2, destroy]);
  expect(check({ assert: 'all_destroyed' }, all, 9)).toMatchObject({
    holds: false,
    entries: [2],
    message: 'i-2 was made and not destroyed',
  });
  expect(check({ assert: 'all_destroyed', where: { resource: 'i-1' } }, all, 9)).toMatchObject({
    holds: true,
  });
});

it('not_read_when_gone names reads after a 404', () => {
  const all = entries([0, read()], [1, gone], [2, gone]);
  expect(check({ assert: 'not_read_when_gone' }, all, 9)).toMatchObject({ holds: false, entries: [3] });
  expect(check({ assert: 'not_read_when_gone' }, all.slice(0, 2), 9)).toMatchObject({ holds: true });
});

it('retry_after_kept names a retry that came too soon', () => {
  const limited = { ...read(), status: 429, response: { headers: { 'retry-after': '10' } } };
  expect(check({ assert: 'retry_after_kept' }, entries([0, limited], [9, read()]), 9)).toMatchObject({
    holds: false,
    message: 'GET /v1/instances/i-1 was sent again after 9 s, and not after 10 s',
  });
  expect(check({ assert: 'retry_after_kept' }, entries([0, limited], [10, read()]), 10)).toMatchObject({
    holds: true,
  });
});

it.each([
  [{ at_least: 2 }, true],
  [{ at_least: 3 }, false],
  [{ at_most: 1 }, false],
  [{ at_most: 2 }, true],
  [{ exactly: 2 }, true],
  [{ exactly: 1 }, false],
  [{}, true],
  [{ where: { operation: 'createVolume' } }, false],
  [{ where: { operation: 'createVolume' }, exactly: 0 }, true],
])('requests %o of two: %s', (asked, holds) => {
  const all = entries([0, read()], [1, read()]);
  expect(check({ assert: 'requests', ...asked }, all, 9)).toMatchObject({ holds });
});

it('in_order wants a request for each filter, each after the one before', () => {
  const all = entries([0, create('i-1')], [1, read()], [2, destroy]);
  const inOrder = (...operations: string[]) =>
    check({ assert: 'in_order', filters: operations.map((operation) => ({ operation })) }, all, 9);
  expect(inOrder('createInstance', 'destroyInstance')).toMatchObject({ holds: true });
  expect(inOrder('destroyInstance', 'createInstance')).toMatchObject({
    holds: false,
    message: 'no request matches filters[1] after the previous filters',
  });
  expect(inOrder('getInstance', 'getInstance')).toMatchObject({ holds: false });
});

it('a create that was delivered twice counts with both machines', async () => {
  await using sandbox = await startBench();
  const { arm, ask, order } = await benchOf(sandbox);
  await arm('delivered-twice', { route: 'POST /instances' });
  const second = (await order('twin')).body.id;
  const { instances } = (await ask('GET', '/instances')).body;
  const [first] = instances.flatMap(({ id }: { id: string }) => (id === second ? [] : [id]));
  const { journal } = sandbox.control;
  const { results } = await journal.check({ assert: 'never_created_twice' });
  expect(results).toMatchObject([
    { holds: false, message: `the same create made ${first} and ${second}`, entries: [1] },
  ]);
  expect(await journal.entries({ resource: first })).toMatchObject([{ number: 1, made: [first, second] }]);

  await ask('DELETE', `/instances/${second}`);
  await expect(journal.assert({ assert: 'all_destroyed' })).rejects.toThrow(
    `${first} was made and not destroyed`,
  );
  await ask('DELETE', `/instances/${first}`);
  await journal.assert({ assert: 'all_destroyed' });
});

it('a create with an Idempotency-Key that was delivered twice made one machine', async () => {
  await using sandbox = await startBench();
  const { arm, baseUrl, apiKey } = await benchOf(sandbox);
  await arm('delivered-twice', { route: 'POST /instances' });
  const made = await sandbox.fetch(`${baseUrl}/instances`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'k',
    },
    body: JSON.stringify({
      ...{ configuration_id: 'd-cpu-4x16', region: 'us-phoenix', image: 'ubuntu-24.04' },
      ssh_keys: [SSH_KEY],
    }),
  });
  expect(made.status).toBe(201);
  await sandbox.control.journal.assert({ assert: 'never_created_twice' });
});

it('a filter that there is not is refused, not left out', async () => {
  await using sandbox = await createSandbox();
  const { journal } = sandbox.control;
  const { baseUrl } = sandbox.provider('a');
  await sandbox.fetch(`${baseUrl}/instances`);
  await expect(journal.entries({ staus: '404' } as object)).rejects.toThrow('staus');
  await expect(journal.assert({ assert: 'requests', where: { pth: '*' } as object })).rejects.toThrow('pth');
  await expect(journal.assert({ assert: 'requests', exacly: 0 } as never)).rejects.toThrow('exacly');
  expect(await journal.entries({ provider: 'a' })).toHaveLength(1);
});
