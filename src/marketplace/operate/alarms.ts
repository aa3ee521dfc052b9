import { alarmOperations } from '../../operator-kit/alarms/operations.ts';
import { alarmKindFacts } from '../model/alarm.ts';

export const { alarmsView, endedAlarmsView, acknowledgeAlarms } = alarmOperations(
  alarmKindFacts,
  'berth marketplace',
);
