import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Transport } from '../http/transport.ts';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import { AlertSender } from './alerts.ts';
import { openState } from './state.ts';

it('an alert is posted until it is accepted, in order, and once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-alerts-'));
  const state = await openState(folder);
  onTestFinished(() => {
    state.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const clock = createAutoClock();
  const posted: string[] = [];
  const transport: Transport = {
    roundTripMs: async () => undefined,
    close: async () => {},
    async send({ url, body }) {
      posted.push(`${clock.now()} ${url} ${JSON.parse(body ?? '').text}`);
      if (posted.length === 1) return { failure: 'connect', message: 'refused', totalMs: 0 };
      const status = posted.length === 2 ? 503 : 204;
      return { status, headers: {}, body: '', firstByteMs: 0, totalMs: 0 };
    },
  };
  const sender = new AlertSender({ state, clock, transport, webhook: 'https://alerts.test/' });
  for (const [index, text] of ['first', 'second'].entries())
    state.addAlert({
      id: text,
      at: new Date(clock.wall() + index).toISOString(),
      provider: 'a',
      kind: 'status',
      text,
    });
  const never = new AbortController().signal;
  sender.wake(never);
  sender.wake(never);
  await sender.settled();
  expect(posted).toEqual([
    '0 https://alerts.test/ first',
    '60000 https://alerts.test/ first',
    '180000 https://alerts.test/ first',
    '180000 https://alerts.test/ second',
  ]);
  expect(state.unsentAlerts()).toEqual([]);
});
