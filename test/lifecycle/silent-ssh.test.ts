import { expect, it } from 'vitest';
import { collectLog } from '../support/doubles/log.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

it('a machine whose SSH never answers is in the log at each failed step, and in the metrics, while its window lasts [silent-ssh-is-told]', async () => {
  const { log, lines } = collectLog();
  await using plain = await startPlainOrchestrator(() => 'none', {
    log,
    probe: { probe: async () => ({ ok: false, step: 'banner', detail: 'no answer' }) },
  });
  const { orchestrator, clock } = plain;
  const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  for (let second = 0; second < 60; second++) await clock.advance(1_000);
  const failed = lines.filter(({ message }) => message.startsWith('a step failed'));
  expect(failed.length).toBeGreaterThan(20);
  expect(failed.at(-1)?.fields).toMatchObject({
    instance: body['id'],
    account: orchestrator.account.id,
    step: 'verify',
    reason: 'banner: no answer',
    attempt: failed.length,
  });
  const text = await (await orchestrator.admin.fetch('/metrics')).text();
  const overdue = Number(/^berth_work_overdue_seconds (.+)$/m.exec(text)?.[1]);
  expect(overdue).toBeGreaterThan(50);
  expect(overdue).toBeLessThanOrEqual(60);
  expect(text).toMatch(/^berth_instances_waiting\{step="verify"\} 1$/m);
  expect(text).toMatch(/^berth_instances_waiting\{step="create"\} 0$/m);
});
