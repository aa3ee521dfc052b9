import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBench } from '../faults/bench.fixture.ts';
import type { SandboxAccount } from '../parts.ts';
import type { Sandbox } from '../sandbox.ts';
import { runClient } from './clients.fixture.ts';
import { judge, type Verdict } from './verdict.ts';

let sandbox: Sandbox;
let account: SandboxAccount;
/** Two clicks, and no region: two rules fail. */
beforeAll(async () => {
  sandbox = await startBench();
  account = await sandbox.account();
  await runClient(sandbox, account, { clicks: 2, region: undefined });
});
afterAll(() => sandbox.close());

const judged = (): Promise<Verdict> => sandbox.verdict({ account: account.name });
const resultsOf = ({ rules }: Verdict) =>
  Object.fromEntries(rules.flatMap(({ rule, result }) => (result === 'pass' ? [] : [[rule, result]])));
const NOT_TESTED = {
  'keeps-retry-after': 'not_tested',
  'refreshes-token-ahead': 'not_tested',
  'survives-faults': 'not_tested',
};

it('names the failed rules with the sentence and the entries, and says why a rule was not tested', async () => {
  const verdict = await judged();
  expect(resultsOf(verdict)).toEqual({ ...NOT_TESTED, 'creates-once': 'fail', 'sends-region': 'fail' });
  expect(verdict).toMatchObject({
    account: account.name,
    holds: false,
    counts: { pass: 5, fail: 2, not_tested: 3 },
  });
  const of = (id: string) => verdict.rules.find(({ rule }) => rule === id);
  const creates = await sandbox.control.journal.entries({ operation: 'createInstance' });
  expect(of('creates-once')).toMatchObject({
    cites: expect.stringMatching(/^O: If names must be unique on the platform/),
    findings: [
      {
        message: `the same create made ${creates.map(({ resource }) => resource).join(' and ')}`,
        entries: creates.map(({ number }) => number),
      },
    ],
  });
  expect(of('refreshes-token-ahead')).toMatchObject({
    not_tested: 'no token expired while the client sent requests',
    findings: [],
  });
});

it('is the same from the library, the control API and the typed client', async () => {
  const answer = await sandbox.fetch(`/control/verdict?account=${account.name}`, {
    headers: { authorization: `Bearer ${sandbox.controlKey}` },
  });
  const verdict = await judged();
  expect([answer.status, await answer.json()]).toEqual([200, verdict]);
  expect(await sandbox.control.verdict({ account: account.name })).toEqual(verdict);
  expect((await sandbox.fetch('/control/verdict')).status).toBe(401);
  const headers = { authorization: `Bearer ${sandbox.controlKey}` };
  expect((await sandbox.fetch('/control/verdict?acount=me', { headers })).status).toBe(400);
});

it('does not hold if nothing was tested', async () => {
  const verdict = await sandbox.verdict({ account: 'nobody' });
  expect(verdict).toMatchObject({ holds: false, requests: 0, counts: { pass: 0, fail: 0, not_tested: 10 } });
});

it('says how many requests it could not judge, since the journal dropped them', async () => {
  const entries = await sandbox.control.journal.entries({ account: account.name });
  expect(judge({ entries, dropped: 12 }, sandbox.clock.now()).dropped).toBe(12);
});
