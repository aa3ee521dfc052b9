import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import type { Arming } from '../faults/arming.ts';
import { startBench } from '../faults/bench.fixture.ts';
import type { FaultName } from '../faults/catalog/catalog.ts';
import { marketClient } from '../isolation.fixture.ts';
import type { Sandbox } from '../sandbox.ts';
import { runClient } from './clients.fixture.ts';
import { rules } from './rules.ts';
import type { Verdict } from './verdict.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startBench();
});
afterAll(() => sandbox.close());
afterEach(() => sandbox.faults.clear());

type Habits = Parameters<typeof runClient>[2];
interface Armed {
  fault: FaultName;
  options: Arming<FaultName>;
}

const armed = (fault: FaultName, options: object): Armed => ({
  fault,
  options: options as Arming<FaultName>,
});

/** Runs a client and judges it `afterS` seconds later. */
async function verdictOn(habits: Habits, faults: readonly Armed[] = [], afterS = 40): Promise<Verdict> {
  const account = await sandbox.account();
  for (const { fault, options } of faults)
    await sandbox.faults.arm(fault, { provider: 'd', ...options } as never);
  await runClient(sandbox, account, habits);
  await sandbox.clock.advance(afterS * 1_000);
  return sandbox.verdict({ account: account.name });
}

const failedOf = ({ rules: all }: Verdict): string[] =>
  all.filter(({ result }) => result === 'fail').map(({ rule }) => rule);
/** A token lives for an hour. */
const ALMOST_EXPIRED_S = 3_570;
const BUSY = armed('http-429', { route: 'GET /availability', retry_after_s: 25 });

it('a good client passes every rule', async () => {
  const verdict = await verdictOn({ waitsForS: ALMOST_EXPIRED_S }, [BUSY]);
  expect(verdict).toMatchObject({ holds: true });
  expect(verdict.rules.map(({ rule, result, findings }) => [rule, result, findings])).toEqual(
    [...rules.map(({ id }) => id), 'survives-http-429'].map((id) => [id, 'pass', []]),
  );
});

const POLL = 'GET /instances/{id}';
const LIST = 'GET /instances';
const CREATE = 'POST /instances';

/** Each broken client fails its rule, and no other. */
const broken: [rule: string, habits: Habits, faults?: Armed[]][] = [
  ['polls-in-time', { pollEveryS: 45 }],
  ['polls-not-too-often', { pollEveryS: 5 }],
  ['stops-at-404', { confirms404: 2 }],
  ['accepts-404-of-delete', { deletesWhenGone: 2 }],
  ['keeps-retry-after', { keepsRetryAfter: false }, [BUSY]],
  ['refreshes-token-ahead', { refreshesToken: 'after 401', waitsForS: ALMOST_EXPIRED_S }],
  ['creates-once', { clicks: 2 }],
  ['leaves-nothing-running', { ends: 'stop' }],
  ['sends-region', { region: undefined }],
];

/** The habits of a client that a fault defeats, and those of one that survives it. */
const faulty: [what: string, fault: FaultName, options: object, bad: Habits, good?: Habits][] = [
  ['stops polling at a 500', 'http-500', { route: POLL, skip: 3 }, { endsAt: 'an error' }],
  ['stops polling without an answer', 'no-answer', { route: POLL, skip: 3 }, { endsAt: 'an error' }],
  [
    'takes an unreadable answer for an end',
    'truncated-json',
    { route: POLL, skip: 3 },
    { endsAt: 'an unreadable answer' },
  ],
  [
    'takes an empty list for an end',
    'empty-list',
    { route: LIST, skip: 3 },
    { endsAt: 'a list without it' },
    { lists: true },
  ],
  [
    'takes a 404 of the list for an end',
    'html-page',
    { route: LIST, skip: 3, status: 404 },
    { endsAt: 'a list without it' },
    { lists: true },
  ],
  ['creates again what was made', 'answer-lost', { route: CREATE }, { repeatsCreate: 'anew' }],
  ['never learns what it made', 'answer-lost', { route: CREATE }, { repeatsCreate: 'never' }],
  ['gives up a create', 'http-503', { route: CREATE }, { repeatsCreate: 'never' }],
];

describe('a client that obeys every rule but', () => {
  it.each(broken)('%s fails that rule only', async (rule, habits, faults) => {
    const verdict = await verdictOn(habits, faults, 0);
    expect(failedOf(verdict)).toEqual([rule]);
    expect(verdict.holds).toBe(false);
    const known = (await sandbox.control.journal.entries()).map(({ number }) => number);
    for (const { entries } of verdict.rules.flatMap(({ findings }) => findings)) {
      expect(entries.length).toBeGreaterThan(0);
      expect(known).toEqual(expect.arrayContaining(entries));
    }
  });
});

describe('a client that', () => {
  it.each(faulty)('%s fails the rule of %s only, and a good one passes it', async (_what, ...given) => {
    const [fault, options, bad, good = {}] = given;
    expect(failedOf(await verdictOn(bad, [armed(fault, options)]))).toEqual([`survives-${fault}`]);
    const { rules: judged, holds } = await verdictOn(good, [armed(fault, options)]);
    expect(holds).toBe(true);
    expect(judged.at(-1)).toMatchObject({ rule: `survives-${fault}`, result: 'pass' });
  });
});

it('a client is not judged by a fault that has only just triggered', async () => {
  const account = await sandbox.account();
  const { baseUrl, apiKey } = account.providers['provider-d'] as { baseUrl: string; apiKey: string };
  await sandbox.faults.arm('http-503', { provider: 'd', retry_after_s: 60 });
  await sandbox.fetch(`${baseUrl}/availability`, { headers: { authorization: `Bearer ${apiKey}` } });
  const resultAfter = async (seconds: number) => {
    await sandbox.clock.advance(seconds * 1_000);
    return (await sandbox.verdict({ account: account.name })).rules.at(-1);
  };
  const early = { result: 'not_tested', not_tested: 'less than 31 s have passed since the fault triggered' };
  expect(await resultAfter(0)).toMatchObject(early);
  expect(await resultAfter(91)).toMatchObject(early);
  expect(await resultAfter(1)).toMatchObject({
    rule: 'survives-http-503',
    result: 'fail',
    findings: [{ message: 'GET /v1/availability was answered 503, and was not sent again' }],
  });
});

it('a client that reads on after the 404 of a fault is not blamed', async () => {
  const account = await sandbox.account();
  const { baseUrl, apiKey } = account.providers['provider-d'] as { baseUrl: string; apiKey: string };
  const headers = { authorization: `Bearer ${apiKey}` };
  await sandbox.faults.arm('false-404', { provider: 'd', route: POLL, times: 3 });
  for (let count = 0; count < 3; count++) {
    await sandbox.fetch(`${baseUrl}/instances/inst-1?region=us-phoenix`, { headers });
    await sandbox.clock.advance(20_000);
  }
  expect(failedOf(await sandbox.verdict({ account: account.name }))).toEqual([]);
  for (let count = 0; count < 3; count++) {
    await sandbox.fetch(`${baseUrl}/instances/inst-1?region=us-phoenix`, { headers });
    await sandbox.clock.advance(20_000);
  }
  expect(failedOf(await sandbox.verdict({ account: account.name }))).toEqual(['stops-at-404']);
});

it('a client that names another region fails', async () => {
  const account = await sandbox.account();
  await runClient(sandbox, account, { region: 'us-dallas' });
  const verdict = await sandbox.verdict({ account: account.name });
  expect(failedOf(verdict)).toEqual(['sends-region']);
  const messages = verdict.rules.flatMap(({ findings }) => findings.map(({ message }) => message));
  expect(messages).toEqual([expect.stringMatching(/had the region us-dallas, not us-phoenix$/)]);
});

describe('a client of the marketplace', () => {
  it('is judged by its own requests, not by those that the marketplace sends for it', async () => {
    await using market = await createSandbox({ providers: ['b'], marketplace: true });
    const account = await market.account();
    const client = marketClient(market, account);
    const { id } = (await client.deploy()).body;
    await client.until(id, 'running');
    const verdict = () => market.verdict({ account: account.name });
    expect(failedOf(await verdict())).toEqual(['leaves-nothing-running']);
    await market.clock.advance(20 * 60_000);
    expect((await client.ask('DELETE', `/deployments/${id}`)).status).toBe(200);
    expect(await verdict()).toMatchObject({ holds: true, counts: { fail: 0 } });
    const { rules: sent } = await market.verdict({ account: 'marketplace' });
    expect(sent).toContainEqual(expect.objectContaining({ rule: 'sends-region', result: 'pass' }));
  });
});
