import { expect, it } from 'vitest';
import { setPassword } from '../../src/orchestrator/accounts/accounts.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { until } from '../support/time/until.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const PASSWORD = 'correct horse battery staple';

// Long: each wrong password costs a whole derivation, as a right one does.
it.each([
  ['from everybody at one address', { trustedProxies: 0 }],
  ['from everybody behind one proxy', { trustedProxies: 1 }],
])(
  'logins that fail %s refuse nobody the right password or key, not even there [login-throttle-spares-right-password]',
  async (_where, options) => {
    const clock = new VirtualClock();
    await using orchestrator = await startTestOrchestrator({
      clock,
      reconcile: { watchIntervalMs: 60_000 },
      rateLimits: {},
      ...options,
    });
    await orchestrator.addAccount('other');
    for (const account of ['default', 'other'])
      await setPassword({ store: orchestrator.store, clock, random: systemRandom }, account, PASSWORD);
    const headers = { 'X-Forwarded-For': '198.51.100.1' };
    const buy = (body: unknown, from: Record<string, string>) =>
      orchestrator.request<{ error?: { code: string } }>('POST', '/auth/token', {
        key: null,
        body,
        headers: from,
      });

    const wrong = { username: 'default', password: 'not the password' };
    const failing = [
      ...Array.from({ length: 11 }, () => wrong),
      { username: 'nobody', password: 'x' },
      ...Array.from({ length: 60 }, () => ({ api_key: 'berth_wrong' })),
    ];
    let answered = 0;
    const flood = failing.map(async (body) => {
      const reply = await buy(body, headers);
      answered++;
      return reply;
    });

    const right = [
      ...['default', 'other'].map((username) => ({ username, password: PASSWORD })),
      { api_key: orchestrator.key },
    ];
    for (const body of right)
      for (const from of [headers, { 'X-Forwarded-For': '198.51.100.2' }])
        expect((await buy(body, from)).status).toBe(200);

    await until('all are answered', async () => {
      await clock.advance(1_000);
      return answered === failing.length;
    });
    for (const { status, body } of await Promise.all(flood))
      expect([status, body.error?.code]).toEqual([401, 'unauthorized']);
  },
);
