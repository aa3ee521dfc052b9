import { alarmOperations } from '../../operator-kit/alarms/operations.ts';
import { linkOfId } from '../../operator-kit/columns.ts';
import { alarmKindFacts } from '../model/alarm.ts';

export const { alarmsView, endedAlarmsView, acknowledgeAlarms } = alarmOperations(
  alarmKindFacts,
  'berth marketplace',
  ({ subject, platform: provider }) =>
    linkOfId(subject) ??
    (provider === null ? undefined : `/deployments?provider=${encodeURIComponent(provider)}`),
);
