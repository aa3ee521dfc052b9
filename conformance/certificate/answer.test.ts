import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { suiteDigest } from '../contract/suite-digest.ts';
import { unlinked } from '../transcript/chain.fixture.ts';
import type { Exchange, RunRecord, TranscriptRecord } from '../transcript/records.ts';
import { refuseOtherAnswer } from './answer.ts';
import { challengeSetup, TLS_KEY } from './challenge.fixture.ts';
import { type ReadChallenge, refuseOtherRun } from './challenge.ts';

const setup = challengeSetup();
const requirements = loadRequirements().digest;
const OTHER = '0'.repeat(64);
const HOUR = 3_600_000;

let challenge: ReadChallenge;
let other: ReadChallenge;
let records: TranscriptRecord[];

beforeAll(async () => {
  const file = await setup.issue('full', '--level', 'full', '--base-url', setup.target.baseUrl);
  challenge = setup.read(file);
  other = setup.read(await setup.issue('other', '--level', 'full'));
  const { code, err, transcript } = await setup.answer(file, 'full');
  expect([0, 2], err).toContain(code);
  records = unlinked(readFileSync(transcript, 'utf8'));
});
afterAll(() => setup[Symbol.asyncDispose]());

type Forged = {
  run: RunRecord;
  records: TranscriptRecord[];
  exchanges: Exchange[];
  of: (step: string) => Exchange[];
};

function some<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('the run has none');
  return found;
}

/** Makes a request another one, under its own number, id and times. */
function become(exchange: Exchange, { step, request, answer }: Exchange): void {
  const id = exchange.request.headers['x-request-id'] ?? '';
  const headers = { ...request.headers, 'x-request-id': id };
  Object.assign(exchange, { step, request: { ...request, headers }, answer });
}

/** Two polls of one wait, one after the other, with `between` of one step between them if it is named. */
function waitWith({ exchanges }: Forged, between?: string): Exchange[] {
  const polls = exchanges.flatMap((first, index) => {
    const found = exchanges.slice(index, index + (between === undefined ? 2 : 3));
    const isWait = first.step.endsWith('poll') && found.at(-1)?.step === first.step;
    const isWith = between === undefined || found[1]?.step === between;
    return isWait && isWith && found.at(-1)?.request.path === first.request.path ? [found] : [];
  });
  return some(polls.find(([poll]) => poll?.request.path.startsWith('/instances/')));
}

function refused(change: (forged: Forged) => unknown, required = {}, read = challenge): () => void {
  const copy = structuredClone(records);
  const [run] = copy;
  if (run?.kind !== 'run') throw new Error('it does not begin with its run');
  const exchanges = copy.filter((record) => record.kind === 'exchange');
  const of = (first: string) => exchanges.filter(({ step }) => `${step}/`.startsWith(`${first}/`));
  change({ run, records: copy, exchanges, of });
  return () => refuseOtherAnswer(copy, read, { requirements, ...required });
}

/** Moves all times of a run. */
function shift({ run, exchanges }: Forged, ms: number): void {
  const moved = (time: string): string => new Date(Date.parse(time) + ms).toISOString();
  run.startedAt = moved(run.startedAt);
  for (const exchange of exchanges) exchange.wall = moved(exchange.wall);
}

/** Exchanges what two requests asked, with their answers, and leaves each its number, id and times. */
function swap(one: Exchange | undefined, two: Exchange | undefined): void {
  if (one === undefined || two === undefined) throw new Error('there are no two of them');
  const ids = [one, two].map(({ request }) => request.headers['x-request-id'] ?? '');
  const [step, request, answer] = [one.step, one.request, one.answer];
  Object.assign(one, { step: two.step, request: two.request, answer: two.answer });
  Object.assign(two, { step, request, answer });
  for (const [index, exchange] of [one, two].entries())
    exchange.request = {
      ...exchange.request,
      headers: { ...exchange.request.headers, 'x-request-id': ids[index] ?? '' },
    };
}

const regionOf = ({ request }: Exchange): string => request.path.replace(/.*region=/, '');

function nameRegion(exchange: Exchange | undefined, region: string): void {
  const { request } = some(exchange);
  some(exchange).request = { ...request, path: request.path.replace(/region=.*/, `region=${region}`) };
}

/** A region of the offers that the run did not draw. */
function undrawn(of: Forged['of']): string {
  const drawn = new Set(of('catalog/of-region').map(regionOf));
  return some(Array.from({ length: 40 }, (_, index) => `region-${index + 1}`).find((one) => !drawn.has(one)));
}

describe('the transcript of a run for a challenge', () => {
  it('is accepted, also for its TLS key and its suite', () => {
    expect(refused(() => {})).not.toThrow();
    expect(refused(() => {}, { tlsKey: TLS_KEY, suiteDigest: suiteDigest() })).not.toThrow();
  });

  it('is accepted where the run was interrupted during a read', async () => {
    const file = await setup.issue('interrupted', '--level', 'lifecycle');
    const { transport, signals } = setup.target;
    const { send } = transport;
    transport.send = (request, limits) => {
      if (request.headers['user-agent']?.endsWith(' boot/poll')) setImmediate(() => signals.emit('SIGINT'));
      return send(request, limits);
    };
    const { transcript } = await setup.answer(file, 'lifecycle', 'interrupted');
    transport.send = send;
    const interrupted = unlinked(readFileSync(transcript, 'utf8'));
    expect(interrupted).toContainEqual(
      expect.objectContaining({ step: 'boot/poll', superseded: true, failure: expect.anything() }),
    );
    expect(interrupted.at(-1)).toMatchObject({ kind: 'end', reason: 'interrupted' });
    expect(() => refuseOtherAnswer(interrupted, setup.read(file), { requirements })).not.toThrow();
  });

  it('has the times of its clock, which may drift a little', () => {
    expect(refused((forged) => shift(forged, HOUR))).not.toThrow();
    expect(
      refused(({ exchanges }) => {
        for (const exchange of exchanges)
          exchange.wall = new Date(Date.parse(exchange.wall) + 5000).toISOString();
      }),
    ).not.toThrow();
  });

  it('has fresh keys, which the nonce does not draw', async () => {
    const keys = (all: readonly TranscriptRecord[]) =>
      all.flatMap((record) =>
        record.kind === 'exchange' ? (record.request.body?.match(/ssh-ed25519 \S+/g) ?? []) : [],
      );
    const again = await setup.answer(
      await setup.issue('again', '--level', 'lifecycle'),
      'lifecycle',
      'again',
    );
    const found = [
      ...new Set(keys(records)),
      ...new Set(keys(unlinked(readFileSync(again.transcript, 'utf8')))),
    ];
    expect(found.length).toBeGreaterThan(4);
    expect(new Set(found).size).toBe(found.length);
  });

  it.each<[string, RegExp, (forged: Forged) => unknown]>([
    ['no challenge', /without a challenge/, ({ run }) => delete run.challenge],
    ['no hash chain', /not a hash chain/, ({ run }) => delete run.isChained],
    ['another challenge', /for another challenge/, ({ run }) => Object.assign(run, { challenge: OTHER })],
    ['another seed', /for another challenge/, ({ run }) => Object.assign(run, { seed: OTHER })],
    ['a lower level', /level lifecycle/, ({ run }) => Object.assign(run, { level: 'lifecycle' })],
    [
      'another target',
      /target is https:\/\/nowhere/,
      ({ run }) => Object.assign(run, { baseUrl: 'https://nowhere.example/v1' }),
    ],
    ['other requirements', /other requirements/, ({ run }) => Object.assign(run, { requirements: OTHER })],
    ['a run that began before the challenge', /before the challenge/, (forged) => shift(forged, -1000)],
    [
      'a start that is not a time',
      /before the challenge/,
      ({ run }) => Object.assign(run, { startedAt: 'x' }),
    ],
    [
      'an entry of the ledger beyond all others',
      /the name berth-conf/,
      ({ records: all }) => {
        const [made] = all.filter(({ kind }) => kind === 'resource').slice(-1);
        const name = `berth-conf-${all[0]?.kind === 'run' && all[0].runId}-4000000000`;
        Object.assign(made ?? {}, { entry: 4_000_000_000, name });
      },
    ],
    ['a run that ended after it expired', /and the challenge expired/, (forged) => shift(forged, 24 * HOUR)],
    [
      'a request at another time than its clock says',
      /shows the time/,
      ({ exchanges: [, , third] }) => Object.assign(third ?? {}, { wall: '2026-01-01T11:00:00.000Z' }),
    ],
    [
      'two lines in the other order',
      /backwards/,
      ({ records: all }) => all.splice(2, 0, ...all.splice(20, 1)),
    ],
    [
      'a request sent before the one before it',
      /backwards/,
      ({ exchanges }) => Object.assign(exchanges[30] ?? {}, { sentAt: 0 }),
    ],
    [
      'a request that ended before it was sent',
      /backwards/,
      ({ exchanges }) => Object.assign(exchanges[30] ?? {}, { endedAt: 0 }),
    ],
    [
      'an end before the last request',
      /backwards/,
      ({ records: all }) => Object.assign(all.at(-1) ?? {}, { at: 5 }),
    ],
    [
      'a request less',
      /no request \d+/,
      ({ records: all }) =>
        all.splice(
          all.findIndex(({ kind }) => kind === 'exchange'),
          1,
        ),
    ],
    [
      'a login less',
      /no login 1/,
      ({ records: all }) =>
        all.splice(
          all.findIndex(({ kind }) => kind === 'ssh'),
          1,
        ),
    ],
    [
      'another TLS key in one answer',
      /request 31 was answered with the TLS key/,
      ({ exchanges }) => Object.assign(exchanges[30] ?? {}, { tlsKey: OTHER }),
    ],
    [
      'an answer without TLS',
      /request 31 was answered without TLS/,
      ({ exchanges }) => delete exchanges[30]?.tlsKey,
    ],
    [
      'a failure left out as one that was sent again',
      /request 31 was answered 500, and left out/,
      ({ exchanges }) => {
        Object.assign(exchanges[30] ?? {}, { superseded: true });
        Object.assign(exchanges[30]?.answer ?? {}, { status: 500 });
      },
    ],
    [
      'a second round before its drawn moment',
      /earlier than the moment/,
      ({ of, exchanges }) => {
        const seen = new Set<string>();
        const [second] = of('unknown').filter(({ step, request: { method, path } }) => {
          const isSecond = seen.has(`${step} ${method} ${path}`);
          seen.add(`${step} ${method} ${path}`);
          return isSecond;
        });
        const before = exchanges.find(({ n }) => n === (second?.n ?? 0) - 1);
        Object.assign(second ?? {}, { sentAt: before?.endedAt });
      },
    ],
    [
      'a list sample before its moment',
      /\(sample\/list\) is a list sample before the moment/,
      (forged) => become(some(waitWith(forged)[1]), some(forged.of('sample/list')[0])),
    ],
    [
      'a list sample less',
      /a poll in place of one/,
      (forged) => {
        const [poll, sample] = waitWith(forged, 'sample/list');
        become(some(sample), some(poll));
      },
    ],
    [
      'a second sale before its moment',
      /\(race\/refill\/before\) was sent earlier than the moment/,
      ({ of, exchanges }) => {
        const sale = some(of('race/refill/before')[0]);
        const { wall, endedAt } = some(exchanges.find(({ n }) => n === sale.n - 1));
        Object.assign(sale, { sentAt: endedAt, wall });
      },
    ],
    [
      'an attach more',
      /repeated attaches/,
      ({ of }) => become(some(of('volumes/again/poll')[0]), some(of('volumes/again/post')[0])),
    ],
    [
      'an attach less',
      /repeated attaches/,
      ({ of }) => Object.assign(some(of('volumes/again/post')[0]), { step: 'volumes/attach-anew/post' }),
    ],
    ...['catalog/of-region', 'list/of-region'].flatMap(
      (step): [string, RegExp, (forged: Forged) => unknown][] => [
        [`another region in ${step}`, /another region/, ({ of }) => nameRegion(of(step)[0], undrawn(of))],
        [
          `one region twice in ${step}`,
          /another region/,
          ({ of }) => nameRegion(of(step)[1], regionOf(some(of(step)[0]))),
        ],
        [
          `a region less in ${step}`,
          /one of the drawn regions is missing/,
          ({ of }) => become(some(of(step).at(-1)), some(of('catalog/unknown-region')[0])),
        ],
      ],
    ),
    ...['list-by-region/other', 'unknown/instance', 'unauthenticated'].map(
      (step): [string, RegExp, (forged: Forged) => unknown] => [
        `another region in ${step}`,
        /another region/,
        ({ of }) =>
          nameRegion(
            of(step).findLast(({ request }) => request.path.includes('region=')),
            undrawn(of),
          ),
      ],
    ),
    ['another run id', /run id/, ({ run }) => Object.assign(run, { runId: '0123456789' })],
    [
      'another request id',
      /the request id of its request 31/,
      ({ exchanges }) => Object.assign(exchanges[30] ?? {}, { requestId: crypto.randomUUID() }),
    ],
    [
      'another request id in the header',
      /the request id of its request 31/,
      ({ exchanges }) => Object.assign(exchanges[30]?.request.headers ?? {}, { 'x-request-id': OTHER }),
    ],
    [
      'another name of an instance in its create',
      /the name of its request/,
      ({ of }) => {
        const [create] = of('create/post');
        const body = create?.request.body?.replace(/"name":"[^"]*"/, '"name":"berth-conf-0123456789-001"');
        Object.assign(create?.request ?? {}, { body });
      },
    ],
    [
      'another name of an instance in the ledger',
      /the name berth-conf-0123456789-001/,
      ({ records: all }) =>
        Object.assign(all.find(({ kind }) => kind === 'resource') ?? {}, {
          name: 'berth-conf-0123456789-001',
        }),
    ],
    ...['unknown/instance/get', 'unknown/volume/get', 'unauthenticated/none', 'token/use/elsewhere'].map(
      (step): [string, RegExp, (forged: Forged) => unknown] => [
        `another unknown id in ${step}`,
        /the id of its request/,
        ({ of }) => {
          const found = of(step).find(({ request }) => /[0-9a-f]{8}-/.test(request.path));
          const path = found?.request.path.replace(/[0-9a-f]{8}-/, '00000000-');
          expect(path).toBeDefined();
          Object.assign(found?.request ?? {}, { path });
        },
      ],
    ),
    [
      'another invalid key',
      /the id of its request/,
      ({ of }) => {
        const found = of('unauthenticated/wrong-key').find(
          ({ request }) => request.path === '/configurations',
        );
        Object.assign(found?.request.headers ?? {}, { authorization: 'Bearer berth-conf-never-issued' });
      },
    ],
    ...['catalog/of-type', 'catalog/of-region', 'list/of-region', 'unknown', 'unauthenticated', 'token'].map(
      (step): [string, RegExp, (forged: Forged) => unknown] => [
        `requests of ${step} in another order`,
        /not in the order/,
        ({ of }) => {
          const [one, two] = step === 'token' ? of(step).filter(isWrong) : of(step);
          swap(one, two);
        },
      ],
    ),
  ])('is refused with %s', (_what, why, change) => {
    expect(refused(change)).toThrow(why);
  });

  const isWrong = ({ step }: Exchange): boolean => /^token\/(wrong|empty)/.test(step);

  it('is refused for the challenge of another nonce, also if it is relabelled', () => {
    expect(refused(() => {}, {}, other)).toThrow(/for another challenge/);
    const relabelled = ({ run }: Forged) =>
      Object.assign(run, { challenge: other.digest, seed: other.draws.seed });
    expect(refused(relabelled, {}, other)).toThrow(/run id/);
    const renamed = (forged: Forged) =>
      Object.assign(relabelled(forged), { runId: other.draws.hex('run id', 10) });
    expect(refused(renamed, {}, other)).toThrow(/request id of its request 1 /);
  });

  it('is refused where a TLS key is required, and the target has none', () => {
    const { base_url: _, ...terms } = challenge.challenge;
    const ofAny = { ...challenge, challenge: terms };
    const withoutTls = ({ run, exchanges }: Forged) => {
      run.baseUrl = 'http://127.0.0.1/v1';
      for (const exchange of exchanges) delete exchange.tlsKey;
    };
    expect(refused(withoutTls, {}, ofAny)).not.toThrow();
    expect(refused(withoutTls, { tlsKey: TLS_KEY }, ofAny)).toThrow(/has no TLS key/);
  });

  it('is not begun where the clock is behind the challenge', () => {
    const run = { level: 'full', baseUrl: setup.target.baseUrl } as const;
    const issuedAt = Date.parse(challenge.challenge.issued_at);
    expect(() => refuseOtherRun(challenge.challenge, { ...run, wall: issuedAt })).not.toThrow();
    expect(() => refuseOtherRun(challenge.challenge, { ...run, wall: issuedAt - 1 })).toThrow(
      /set the clock/,
    );
  });

  it('is refused where another TLS key or suite is required', () => {
    expect(refused(() => {}, { tlsKey: OTHER })).toThrow(`and not ${OTHER}`);
    expect(refused(() => {}, { suiteDigest: OTHER })).toThrow(`and not ${OTHER}`);
  });
});
