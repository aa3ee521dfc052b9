import { CHECKS } from '../checks/index.ts';
import type { Requirements } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { causesOf, toFindings } from '../report/findings.ts';
import { plural } from '../report/words.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';

/** The first failure of a run that goes on, if there is one so far, with the minutes that are left. */
export function firstFailure(
  records: readonly TranscriptRecord[],
  { rows }: Requirements,
  minutesLeft: number,
): string | undefined {
  const judged = judge(records, rows, CHECKS);
  if (!judged.some(({ verdict }) => verdict === 'fail')) return undefined;
  const { instances } = new Evidence(records);
  const [first] = toFindings(judged, causesOf(judged, instances), instances);
  const left = plural(Math.max(Math.ceil(minutesLeft), 1), 'minute');
  return first && `first FAIL, with at most about ${left} left: ${first.checks[0]}: ${first.title}`;
}
