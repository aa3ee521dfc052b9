import * as kit from '../../operator-kit/alarms/alarms.ts';
import { type AlarmKind, alarmKindFacts } from '../model/alarm.ts';

export type Raised = kit.Raised<AlarmKind>;

/** The open alarms of an orchestrator. */
export class Alarms extends kit.Alarms<AlarmKind> {
  constructor(deps: Omit<kit.AlarmDeps<AlarmKind>, 'kinds'>) {
    super({ ...deps, kinds: alarmKindFacts });
  }
}
