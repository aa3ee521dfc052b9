import { expect, it } from 'vitest';
import { instance, now } from '../../../store/records.fixture.ts';
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
} as const;

it.each<[string, Partial<Known>, tone: string, headline: RegExp, todo: RegExp]>([
  ['nothing', {}, 'good', /All is well/, /^$/],
  ['a first try', { work: { ...work, attempt: 1, lastError: null } }, 'busy', /^Under way: “destroy”/, /^$/],
  ['a try after a failure', { work }, 'wait', /^Under way/, /^$/],
  [
    'a step that fails on',
    { work, alarms: [failing] },
    'bad',
    /^Stuck at “destroy”.*12 tries/,
    /Remove there/,
  ],
  ['a loss that is held', { work: { ...work, isHeld: true } }, 'bad', /^Held/, /accept the losses/],
  [
    'a platform that is down',
    { work, downSince: now - 120_000 },
    'bad',
    /default cannot be believed for 2 min/,
    /page of the platform/,
  ],
  [
    'no step where there must be one',
    { record: instance('inst-1') },
    'bad',
    /no step of work is open/,
    /Read it/,
  ],
  [
    'a failure',
    { record: instance('inst-1', { status: 'ERROR', error: 'no room' }) },
    'bad',
    /It failed/,
    /owner deletes/,
  ],
])('says of %s what it is and what to do', (_, changes, tone, headline, todo) => {
  const found = diagnose(known(changes), now);
  expect([found.tone, found.headline, found.todo.join(' ')]).toEqual([
    tone,
    expect.stringMatching(headline),
    expect.stringMatching(todo),
  ]);
});
