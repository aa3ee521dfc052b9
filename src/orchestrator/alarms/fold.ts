import type { Log } from '../../ports/log.ts';
import type { AlarmKind } from '../model/alarm.ts';
import type { Alarms, Raised } from './alarms.ts';

/** How many resources of a kind get an alarm each. */
const NAMED = 100;

/** A kind of alarm whose subjects are resources of a platform. */
interface Folded<T> {
  kind: AlarmKind;
  platform: string;
  text: string;
  subjectOf: (item: T) => string;
  /** Describes one resource, in its alarm. */
  describe: (item: T) => string;
  /** Fields of the log line of one resource. */
  fields: (item: T) => object;
  log: Pick<Log, 'error'>;
}

/**
 * Raises the alarm of one more resource. If a hundred of the kind are open, one alarm with the platform as subject
 * covers all further ones.
 */
export function raiseOne(
  alarms: Alarms,
  { log, ...alarm }: Raised & { platform: string; log: Pick<Log, 'error'> },
): void {
  const { kind, platform, subject } = alarm;
  const open = alarms.listOpen().filter((one) => one.kind === kind && one.platform === platform);
  const isNamed = open.length < NAMED || open.some((one) => one.subject === subject);
  const further = { subject: platform, detail: `more than ${NAMED}; ${subject} is the latest` };
  alarms.raise({ ...alarm, ...(!isNamed && further) }, log);
}

/**
 * Raises the alarms of `items`: one each for the first hundred. If there are more, one alarm with the platform as
 * subject gives their number, and its log line has all subjects. With `isComplete`, all other alarms of the kind end.
 */
export function raiseFolded<T>(
  alarms: Alarms,
  { kind, platform, text, subjectOf, describe, fields, log }: Folded<T>,
  items: readonly T[],
  isComplete: boolean,
): void {
  const open = new Set<string>();
  for (const alarm of alarms.listOpen())
    if (alarm.kind === kind && alarm.platform === platform) open.add(alarm.subject);
  const named = items.filter((item) => open.has(subjectOf(item))).slice(0, NAMED);
  // Alarms of resources that are not listed now stay open, unless the listing is complete.
  let places = NAMED - (isComplete ? named.length : open.size);
  for (const item of items) {
    if (places <= 0) break;
    if (open.has(subjectOf(item))) continue;
    named.push(item);
    places--;
  }
  for (const item of named)
    alarms.raise(
      { kind, subject: subjectOf(item), platform, text, detail: describe(item), fields: fields(item) },
      log,
    );
  const subjects = new Set<string>(named.map(subjectOf));
  if (items.length > NAMED) {
    const detail = `${items.length} in all, of which ${NAMED} have their own alarm; the log has the names of all`;
    const fields = { detail, subjects: items.map(subjectOf) };
    alarms.raise({ kind, subject: platform, platform, text, detail, fields }, log);
    subjects.add(platform);
  }
  if (isComplete) alarms.endOthers(kind, platform, subjects);
}
