import { alarmOperations } from '../../operator-kit/alarms/operations.ts';
import { linkOfId } from '../../operator-kit/columns.ts';
import { alarmKindFacts } from '../model/alarm.ts';

const ORPHANS = /^(orphan_machine|orphan_volume|row_lost|leftover)$/;

export const { alarmsView, endedAlarmsView, acknowledgeAlarms } = alarmOperations(
  alarmKindFacts,
  'berth',
  ({ kind, subject, platform }) => {
    const own = linkOfId(subject);
    if (own !== undefined) return own;
    if (ORPHANS.test(kind)) return '/orphans';
    return platform === null ? undefined : `/platforms/${encodeURIComponent(platform)}`;
  },
);
