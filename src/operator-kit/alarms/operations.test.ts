import { beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { AlarmMessage } from './message.ts';
import type { AlarmRoute } from './notifier.ts';
import { testAlarmRoute } from './operations.ts';

const clock = new VirtualClock();
const ann = { name: 'ann', source: 'cli', address: null } as const;
let store: Store;
let sent: AlarmMessage[];

beforeEach(async () => {
  store = await openTestStore();
  sent = [];
});

/** Tests a route, of which `send` is what it does with a message. */
function test(route: string, send: AlarmRoute['send']): Promise<unknown> {
  const onCall: AlarmRoute = {
    name: 'on-call',
    type: 'slack',
    severity: 'critical',
    send,
    close: () => undefined,
  };
  return testAlarmRoute.perform({ store, clock, alarmRoutes: () => [onCall] }, ann, { route });
}
const audited = async () =>
  (await store.read.audit.page({ limit: 9 })).map(({ action, subject, outcome, detail }) => ({
    ...{ action, subject, outcome, detail },
  }));

it('a test sends one message, and the audit log says who sent it [alarm-route-test]', async () => {
  await test('on-call', async (message) => {
    // A call must not hold a transaction: others write meanwhile.
    await store.transact((tx) => tx.marks.put('reload_requested_at', 1));
    sent.push(message);
  });
  expect(sent).toMatchObject([
    { route: 'on-call', alarms: [], text: 'ann tests this route. No alarm is meant.' },
  ]);
  expect(await audited()).toEqual([
    { action: 'alarm.test', subject: 'on-call', outcome: 'done', detail: {} },
  ]);
});

it.each([
  ['on-call', 'The route on-call did not accept it: it answered with status 500.'],
  ['nobody', 'There is no route nobody. Configured: on-call.'],
])('a test of %s that is not accepted says why', async (route, reason) => {
  const refuse = () => Promise.reject(new Error('it answered with status 500'));
  await expect(test(route, refuse)).rejects.toThrow(reason);
  expect(await audited()).toEqual([
    { action: 'alarm.test', subject: route, outcome: 'refused', detail: { reason } },
  ]);
});
