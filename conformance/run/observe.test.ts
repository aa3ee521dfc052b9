import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { runAgainst, type Trial } from '../mutants/harness.ts';
import { READ_AGAIN_MS, READ_AGAIN_STEP } from '../resources/read-again.ts';
import type { Exchange } from '../transcript/records.ts';

const { rows } = loadRequirements();
const isDelete = ({ request }: Exchange): boolean => request.method === 'DELETE';
const LIFECYCLE = [{ level: 'lifecycle', scenarios: ['observe'] }] as const;
const find = ({ judged }: Trial, id: string) => judged.find(({ requirement }) => requirement.id === id);

it('a run that observes the instance for less than 65 s does not say that it stays ONLINE', async () => {
  const trial = await runAgainst({ run: { observeMs: 20_000, pollIntervalMs: 200 } }, rows, LIFECYCLE);
  expect(find(trial, 'SSH-LIVE-001')?.ruling).toMatchObject({
    verdict: 'not_tested',
    reason: expect.stringContaining('--observe-s 65'),
  });
});

it('a run reads destroyed instances again for 30 s, however short it observes the instance', async () => {
  const trial = await runAgainst({ run: { observeMs: 20_000 } }, rows, LIFECYCLE);
  const evidence = new Evidence(trial.records);
  const again = evidence.steps(READ_AGAIN_STEP).at(-1)?.sentAt ?? 0;
  const deleted = Math.max(...evidence.sent.filter(isDelete).map(({ endedAt }) => endedAt));
  expect(again - deleted).toBeGreaterThanOrEqual(READ_AGAIN_MS);
  expect(find(trial, 'DEL-STAYS-001')?.verdict).toBe('pass');
});

it('a run whose patience is shorter than 65 s still observes the instance for 65 s', async () => {
  const run = { readyTimeoutMs: 30_000, pollIntervalMs: 1000 };
  const trial = await runAgainst({ options: { bootMs: 10_000 }, run }, rows, LIFECYCLE);
  const polls = new Evidence(trial.records).steps('observe/poll');
  expect((polls.at(-1)?.sentAt ?? 0) - (polls[0]?.sentAt ?? 0)).toBeGreaterThan(60_000);
  expect(find(trial, 'SSH-LIVE-001')?.verdict).toBe('pass');
});
