import { expect, it } from 'vitest';
import { loadRequirements } from '../contract/requirements.ts';
import { runAgainst } from '../mutants/harness.ts';

const { rows } = loadRequirements();
const DEL_STAYS = expect.objectContaining({ id: 'DEL-STAYS-001' });
const SSH_LIVE = expect.objectContaining({ id: 'SSH-LIVE-001' });

it('a run that observes the instance for less than 65 s does not say that it stays ONLINE', async () => {
  const options = { bootMs: 1_000, stopMs: 0, startMs: 0, destroyMs: 0 };
  const run = { observeMs: 10_000, pollIntervalMs: 200 };
  const { judged } = await runAgainst({ options, run }, rows);
  const open = judged.filter(({ verdict }) => verdict === 'not_tested');
  expect(open.map(({ requirement }) => requirement)).toEqual([SSH_LIVE, DEL_STAYS]);
  expect(open[0]?.ruling).toMatchObject({ reason: expect.stringContaining('--observe-s 65') });
});
