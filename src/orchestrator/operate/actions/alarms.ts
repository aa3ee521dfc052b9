import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import { defineAction } from '../../../operator-kit/operation.ts';
import type { Clock } from '../../../ports/clock.ts';
import { alarmKinds } from '../../model/alarm.ts';
import type { Store } from '../../model/store.ts';
import { type AlarmRow, alarmListSchema, toAlarmRow } from '../views/alarms.ts';

const input = { kind: z.enum(alarmKinds), subject: z.string().optional() };
const subjectOf = ({ kind, subject }: z.output<z.ZodObject<typeof input>>): string =>
  [kind, subject ?? []].flat().join(' ');

/** Records that an operator is working on an alarm, or on all alarms of a kind. Each ends with its cause. */
export const acknowledgeAlarms = defineAction({
  name: 'acknowledgeAlarms',
  tag: 'Views',
  path: '/alarms/acknowledge',
  summary: 'Acknowledge an alarm',
  description: 'Without a subject: all alarms of that kind. An alarm ends with its cause.',
  input,
  example: { kind: 'platform_down', subject: 'default' },
  errors: ['not_found'],
  reply: ['The acknowledged alarms.', alarmListSchema],
  audit: (of) => ({ action: 'alarm.acknowledge', subject: subjectOf(of) }),
  run: async ({ store }: { store: Store; clock: Clock }, { kind, subject }, { name }) => {
    const acknowledged = await store.transact((tx) => tx.alarms.acknowledge({ kind, subject }, name));
    if (acknowledged.length === 0)
      throw new ApiError('not_found', `No alarm ${subjectOf({ kind, subject })} is open.`);
    return { alarms: acknowledged.map(toAlarmRow) };
  },
  commands: [
    {
      name: 'alarms ack',
      description: 'record that you work on an alarm; without a subject, on all of that kind',
      args: { kind: ['<kind>', 'of alarm'], subject: ['[subject]'] },
      flags: { by: ['--by <name>', 'who has taken it on; default: the user of this machine'] },
      toData: ({ alarms }) => ({ acknowledged: alarms.length, by: alarms[0]?.acknowledged_by }),
      toText: ({ alarms }) => [
        `${alarms.length} acknowledged by ${alarms[0]?.acknowledged_by}. An alarm ends when its cause does.`,
      ],
    },
  ],
  form: {
    title: () => 'Acknowledge an alarm',
    button: 'Acknowledge',
    page: () => '/console/alarms',
    inRows: {
      of: 'listAlarms',
      fields: ({ kind, subject, acknowledged_by: by }: AlarmRow) =>
        by === null ? { kind, subject } : undefined,
    },
  },
});
