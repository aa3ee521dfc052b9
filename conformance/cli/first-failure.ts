import { CHECKS } from '../checks/index.ts';
import type { Requirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { causesOf, toFindings } from '../report/findings.ts';
import { plural } from '../report/words.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';

/** The first finding of a run that goes on, if a check has failed so far, with the minutes that are left. */
export function firstFailure(
  records: readonly TranscriptRecord[],
  { rows }: Requirements,
  minutesLeft: number,
): string | undefined {
  const judged = judge(records, rows, CHECKS);
  if (!judged.some(({ verdict }) => verdict === 'fail')) return undefined;
  const { instances } = new Evidence(records);
  const [finding] = toFindings(judged, causesOf(judged, instances), instances);
  const left = plural(Math.max(Math.ceil(minutesLeft), 1), 'minute');
  return `FAIL  ${finding?.checks[0]}, with about ${left} left: ${finding?.title}`;
}
