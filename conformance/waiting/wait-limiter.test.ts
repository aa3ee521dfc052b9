import { describe, expect, it } from 'vitest';
import type { Exchange } from '../transcript/records.ts';
import { type Awaited, prospectOf, prospectOfList } from './answers.ts';
import { WaitLimiter } from './wait-limiter.ts';

const gone: Awaited = { of: 'instance', onTheWay: ['DESTROYING'] };

function read(status: number, body: unknown = { error: { code: 'x', message: 'y' } }): Exchange {
  return {
    kind: 'exchange',
    n: 1,
    step: 'poll',
    sentAt: 0,
    endedAt: 1,
    wall: '2026-01-01T00:00:00.000Z',
    requestId: 'r',
    credential: 'api key',
    request: { method: 'GET', path: '/instances/i', headers: {} },
    answer: { status, headers: {}, body: JSON.stringify(body), firstByteMs: 1 },
  };
}

describe('an answer to a poll', () => {
  it.each([
    ['410', read(410), 'never'],
    ['200 with an error inside', read(200), 'never'],
    ['200 without the fields', read(200, { instance: {} }), 'never'],
    ['a status that is no status', read(200, { status: 'GONE' }), 'never'],
    ['a terminal status that is not the awaited one', read(200, { status: 'ERROR' }), 'never'],
    ['401 to a good key', read(401), 'never'],
    ['502', read(502), 'server-error'],
    ['DESTROYED', read(200, { status: 'DESTROYED' }), 'destroyed'],
    ['a status on the way', read(200, { status: 'DESTROYING' }), 'yes'],
    ['429', read(429), 'yes'],
  ])('%s', (_what, exchange, mayFollow) => {
    expect(prospectOf(exchange, gone).mayFollow).toBe(mayFollow);
  });

  it.each([
    ['a connection that was closed without one', 'reset', 'server-error'],
    ['silence', 'timeout', 'server-error'],
    ['what is no HTTP', 'not_http', 'never'],
    ['a run that was interrupted', 'interrupted', 'yes'],
  ] as const)('of %s', (_what, kind, mayFollow) => {
    const { answer: _, ...lost } = read(200);
    const failed: Exchange = { ...lost, failure: { kind, message: 'no answer' } };
    expect(prospectOf(failed, gone).mayFollow).toBe(mayFollow);
    expect(prospectOfList(failed).mayFollow).toBe(mayFollow);
  });
});

/** When a wait ends if it is answered this every `everyMs`. Undefined if it lasts longer than ten minutes. */
function endOf(
  exchange: Exchange,
  everyMs: number,
  limiter = new WaitLimiter(new Set()),
): number | undefined {
  for (let at = 0; at <= 600_000; at += everyMs)
    if (limiter.take(prospectOf(exchange, gone), at) !== undefined) return at;
  return undefined;
}

describe('a wait', () => {
  it.each([
    ['410, polled often: fifteen seconds', read(410), 200, 15_000],
    ['410, polled at the pace of the contract: twenty answers', read(410), 10_000, 190_000],
    ['5xx: a minute', read(503), 200, 60_000],
    ['DESTROYED: longer than 75 s', read(200, { status: 'DESTROYED' }), 10_000, 80_000],
    ['DESTROYING: never', read(200, { status: 'DESTROYING' }), 10_000, undefined],
  ])('ends with %s', (_what, exchange, everyMs, end) => {
    expect(endOf(exchange, everyMs)).toBe(end);
  });

  it('begins anew with every answer that may become the right one', () => {
    const limiter = new WaitLimiter(new Set());
    for (let round = 0; round < 100; round++) {
      const isHopeful = round % 19 === 0;
      const prospect = prospectOf(isHopeful ? read(200, { status: 'DESTROYING' }) : read(410), gone);
      expect(limiter.take(prospect, round * 10_000)).toBeUndefined();
    }
  });

  it('for what has ended another in vain is shorter, but longer than a replica may lag', () => {
    const known = new Set<string>();
    endOf(read(410), 200, new WaitLimiter(known));
    expect(endOf(read(410), 200, new WaitLimiter(known))).toBe(11_000);
  });

  it('for a server that was not back after a minute is over after twenty answers', () => {
    const known = new Set<string>();
    expect(endOf(read(503), 200, new WaitLimiter(known))).toBe(60_000);
    expect(endOf(read(503), 200, new WaitLimiter(known))).toBe(3_800);
  });
});
