import { expect, it } from 'vitest';
import { instance, now } from '../../../../test/support/rows/orchestrator-rows.ts';
import type { HistoryEvent } from '../../model/history.ts';
import type { Work } from '../../model/work.ts';
import { diagnose, type Known } from './diagnosis.ts';

const known = (changes: Partial<Known> = {}): Known => ({
  record: instance('inst-1', { status: 'ONLINE' }),
  work: null,
  events: [],
  alarms: [],
  downSince: null,
  ...changes,
});

const work: Work = {
  resourceId: 'inst-1',
  resourceKind: 'instance',
  kind: 'destroy',
  cookie: null,
  attempt: 12,
  notBefore: now + 30_000,
  deadlineAt: null,
  lastError: 'conflict: still attached',
  progress: null,
  waitedAttempt: null,
  isHeld: false,
};
const failing = {
  kind: 'step_failing',
  subject: 'inst-1',
  platform: 'default',
  text: '',
  since: now,
  lastSeenAt: now,
  acknowledgedBy: null,
  note: null,
} as const;

it.each<[string, Partial<Known>, tone: string, headline: RegExp, todo: RegExp]>([
  [
    'an alarm about one that rests',
    { alarms: [{ ...failing, kind: 'machine_fault', text: 'its card is on no bridge' }] },
    'bad',
    /ONLINE and has an open alarm/,
    /its card is on no bridge/,
  ],
  ['nothing', {}, 'good', /OK: no action needed/, /^$/],
  [
    'a first try',
    { work: { ...work, attempt: 1, lastError: null } },
    'busy',
    /^In progress: “destroy”/,
    /^$/,
  ],
  [
    'a phase of the platform that is overdue',
    {
      work: {
        ...work,
        lastError: null,
        progress: { phase: 'spawning', since: now - 60_000, deadlineAt: now - 1 },
      },
    },
    'bad',
    /^In progress: “destroy”/,
    /^Look on the platform/,
  ],
  ['a try after a failure', { work }, 'wait', /^In progress/, /^$/],
  [
    'a step that fails on',
    { work, alarms: [failing] },
    'bad',
    /^Stuck at “destroy”.*12 attempts/,
    /Remove on the platform/,
  ],
  ['a loss that is held', { work: { ...work, isHeld: true } }, 'bad', /^Held/, /accept the losses/],
  [
    'a platform that is down',
    { work, downSince: now - 120_000 },
    'bad',
    /default has been frozen for 2 min/,
    /berth alarms ls/,
  ],
  ['no step where there must be one', { record: instance('inst-1') }, 'bad', /has no open step/, /Read it/],
  [
    'a failure',
    { record: instance('inst-1', { status: 'ERROR', error: 'no room' }) },
    'bad',
    /It failed/,
    /owner can delete/,
  ],
])('says of %s what it is and what to do', (_, changes, tone, headline, todo) => {
  const found = diagnose(known(changes), now);
  expect([found.tone, found.headline, found.todo.join(' ')]).toEqual([
    tone,
    expect.stringMatching(headline),
    expect.stringMatching(todo),
  ]);
});

it.each<[string, Partial<Known>, RegExp]>([
  ['no work is open', {}, /^The platform has nothing left of it/],
  [
    'its machine turned up again',
    { alarms: [{ ...failing, kind: 'orphan_machine', subject: 'berth-inst-1' }] },
    /^Its machine is on the platform again.*`berth orphans adopt`/,
  ],
  ['its removal was ordered', { work }, /^Its remains on the platform are being removed\.$/],
  [
    'its machine is kept for a time',
    { work: { ...work, kind: 'hold', deadlineAt: now + 120_000 } },
    /^Its machine is kept for you for another 2 min/,
  ],
  [
    'its machine is kept until a request',
    { work: { ...work, kind: 'hold' } },
    /^Its machine stays, and its unit is not sold, until its owner deletes it/,
  ],
  [
    'its machine is gone, and its unit is kept',
    { work: { ...work, kind: 'release', deadlineAt: now + 120_000 } },
    /^Its machine is gone\. Its unit is not sold for another 2 min/,
  ],
])('says what remains of a failed instance: %s', (_, changes, sentence) => {
  const record = instance('inst-1', { status: 'ERROR', error: 'no room' });
  expect(diagnose(known({ record, ...changes }), now).todo[0]).toMatch(sentence);
});

it('says why the last start of a stopped instance failed', () => {
  const event = {
    instanceId: 'inst-1',
    at: now,
    attempt: 1,
    fromStatus: null,
    toStatus: null,
    detail: null,
    console: null,
    tookMs: 5,
    by: null,
  };
  const call = { call: 'start', outcome: 'capacity', tookMs: 5, detail: 'kvm-1 is full' };
  const failedStart: HistoryEvent[] = [
    { ...event, cause: 'start', next: 'stop', calls: [call] },
    { ...event, cause: 'stop', next: 'finish', calls: [] },
  ];
  const record = instance('inst-1', { status: 'STOPPED' });
  const because = (events: HistoryEvent[]) => diagnose(known({ record, events }), now).because;
  expect(because(failedStart)).toEqual(['The last start failed: kvm-1 is full']);
  const request: HistoryEvent = { ...event, cause: 'request', next: null, calls: [] };
  expect(because([...failedStart, request, ...failedStart.slice(1)])).toEqual([]);
});

it.each([
  [undefined, '“spawning” for 4 min'],
  [now + 120_000, '“spawning” for 4 min, due in 2 min'],
  [now, '“spawning” for 4 min, overdue for 0 s'],
  [now - 120_000, '“spawning” for 4 min, overdue for 2 min'],
])('says what the platform is doing, due at %s', (deadlineAt, words) => {
  const progress = {
    phase: 'spawning',
    since: now - 240_000,
    ...(deadlineAt !== undefined && { deadlineAt }),
  };
  const { because } = diagnose(known({ work: { ...work, progress } }), now);
  expect(because[0]).toBe(`The platform reports ${words}.`);
});
