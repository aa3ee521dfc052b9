import { describe, expect, it } from 'vitest';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import { Transcript } from '../transcript/transcript.ts';
import { suiteIdentity } from './identity.ts';
import { retryAfterMs, TargetClient, type TargetClientOptions } from './target-client.ts';
import type { HttpAnswer, HttpRequest } from './transport.ts';

/** A target that answers `statuses` in turn, and then always 201. */
function setUp(
  statuses: readonly number[],
  headers: Record<string, string> = {},
  more: Partial<TargetClientOptions> = {},
) {
  const clock = createAutoClock();
  const transcript = new Transcript({ redact: (record) => record });
  const sent: { path: string; atMs: number }[] = [];
  const send = async ({ url }: HttpRequest): Promise<HttpAnswer> => {
    const status = statuses[sent.length] ?? 201;
    sent.push({ path: new URL(url).pathname, atMs: clock.now() });
    return { status, headers, body: '{}', firstByteMs: 1, totalMs: 1 };
  };
  const client = new TargetClient({
    ...{
      clock,
      transcript,
      baseUrl: 'https://target.test',
      apiKey: 'k',
      paceMs: 0,
    },
    ...{ identity: suiteIdentity('run'), onSecret: () => {} },
    transport: { send, roundTripMs: async () => 1, close: async () => {} },
    ...more,
  });
  return { client, sent, records: transcript.records };
}

const calls = ['/a', '/b', '/c'].map((path) => ({ step: 's', call: { method: 'POST', path } as const }));

describe('requests at the same moment', () => {
  it('are sent again where they were limited, those alone and together', async () => {
    const { client, sent, records } = setUp([201, 429, 429, 429], { 'retry-after': '7' });
    const answers = await client.sendTogether(calls);
    expect(answers.map(({ request, answer }) => [request.path, answer?.status])).toEqual([
      ['/a', 201],
      ['/b', 201],
      ['/c', 201],
    ]);
    expect(sent.map(({ path, atMs }) => `${path} ${atMs}`)).toEqual([
      '/a 0',
      '/b 0',
      '/c 0',
      '/b 7000',
      '/c 7000',
      '/b 14000',
    ]);
    expect(records.filter((record) => 'superseded' in record)).toHaveLength(3);
  });

  it('end limited where the limit has no end', async () => {
    const { client, sent } = setUp(Array.from({ length: 99 }, () => 429));
    const answers = await client.sendTogether(calls.slice(0, 1));
    expect(answers.map(({ answer }) => answer?.status)).toEqual([429]);
    expect(sent.map(({ atMs }) => atMs / 1000)).toEqual([0, 1, 3, 7, 15, 31, 63]);
  });
});

it.each(['send', 'sendTogether'] as const)('%s sends nothing again once patience is over', async (way) => {
  const { client, sent, records } = setUp([429], { 'retry-after': '7' });
  const over = new AbortController();
  const [first = expect.unreachable()] = calls;
  const answer =
    way === 'send'
      ? client.send(first.step, first.call, undefined, over.signal)
      : client.sendTogether([first], over.signal).then(([exchange]) => exchange);
  setImmediate(() => over.abort());
  expect((await answer)?.answer?.status).toBe(429);
  expect(sent).toHaveLength(1);
  expect(records).toEqual([await answer]);
  expect(records).not.toContainEqual(expect.objectContaining({ superseded: true }));
});

it('a read at which the run was interrupted is recorded, and superseded', async () => {
  const interrupted = new AbortController();
  const send = async () => {
    interrupted.abort(new Error('interrupted'));
    return { failure: 'interrupted', message: 'The exchange was interrupted.', totalMs: 1 } as const;
  };
  const { client, records } = setUp(
    [],
    {},
    {
      transport: { send, roundTripMs: async () => 1, close: async () => {} },
    },
  );
  const call = { method: 'GET', path: '/a' } as const;
  await expect(client.send('s', call, interrupted.signal)).rejects.toThrow('interrupted');
  expect(records).toMatchObject([{ n: 1, superseded: true, failure: { kind: 'interrupted' } }]);
});

it('a request that one in ten seconds is allowed of comes through, without Retry-After', async () => {
  const { client, sent } = setUp([429, 429, 429, 429]);
  const { answer } = await client.send('s', { method: 'POST', path: '/a' });
  expect(answer?.status).toBe(201);
  expect(sent.at(-1)?.atMs).toBe(15_000);
});

describe('where reads are not repeated', () => {
  const get = { method: 'GET', path: '/a' } as const;

  it('a limited one is superseded by the next poll, and counts once too many were limited', async () => {
    const { client, sent, records } = setUp(Array(8).fill(429), {}, { repeatsReads: false });
    for (let poll = 0; poll < 8; poll++) await client.send('s', get);
    expect(sent).toHaveLength(8);
    expect(records.map((record) => 'superseded' in record)).toEqual([...Array(6).fill(true), false, false]);
  });

  it('an answer counts again from the first', async () => {
    const { client, records } = setUp([429, 200, 429], {}, { repeatsReads: false });
    for (let poll = 0; poll < 3; poll++) await client.send('s', get);
    expect(records.map((record) => 'superseded' in record)).toEqual([true, false, true]);
  });

  it('a stop that is limited is sent again', async () => {
    const { client, sent } = setUp([429], {}, { repeatsReads: false });
    const { answer } = await client.send('s', { method: 'POST', path: '/a/stop' });
    expect({ status: answer?.status, sent: sent.length }).toEqual({ status: 201, sent: 2 });
  });
});

it('an answer 304 to an entity tag is superseded: it shows nothing new', async () => {
  const { client, records } = setUp([304, 304]);
  await client.send('s', { method: 'GET', path: '/a', ifNoneMatch: '"1"' });
  await client.send('s', { method: 'GET', path: '/a' });
  expect(records.map((record) => 'superseded' in record)).toEqual([true, false]);
});

it.each([
  ['7', 3, 7000],
  [undefined, 1, 1000],
  [undefined, 6, 32_000],
  ['soon', 3, 4000],
  ['0', 1, 100],
  ['86400', 1, 60_000],
  ['Thu, 01 Jan 2026 12:00:05 GMT', 1, 5000],
])('Retry-After %s at attempt %i is waited for as %i ms', (header, attempt, ms) => {
  expect(retryAfterMs(header, Date.UTC(2026, 0, 1, 12), attempt)).toBe(ms);
});
