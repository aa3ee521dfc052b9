import type { Log } from '../../ports/log.ts';
import type { AlarmKind } from '../model/alarm.ts';
import type { Alarms, Raised } from './alarms.ts';

/** How many resources of a kind get an alarm each. */
const NAMED = 100;
/** How many names a line of the log has: collectors of logs cut lines of more than about 16 KB. */
const NAMES_A_LINE = 100;

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
 * subject gives their number, and the log names the others once. With `isComplete`, all other alarms of the kind end.
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
  const others = items.map(subjectOf).filter((subject) => !subjects.has(subject));
  if (items.length > NAMED) {
    const detail = `${items.length} in all, of which ${NAMED} have their own alarm; the log names the others`;
    alarms.raise({ kind, subject: platform, platform, text, detail, fields: { detail } }, log);
    subjects.add(platform);
  }
  const before = alarms.namesInLog.get(`${kind} ${platform}`) ?? new Set();
  alarms.namesInLog.set(`${kind} ${platform}`, new Set(isComplete ? others : [...before, ...others]));
  const added = others.filter((subject) => !before.has(subject));
  for (let begin = 0; begin < added.length; begin += NAMES_A_LINE)
    log.error({ subjects: added.slice(begin, begin + NAMES_A_LINE) }, text);
  if (isComplete) alarms.endOthers(kind, platform, subjects);
}
