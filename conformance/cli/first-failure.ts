import { CHECKS } from '../checks/index.ts';
import type { Requirements } from '../contract/requirements.ts';
import { plural } from '../report/words.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';

/** The first failure of a run that goes on, if there is one so far, with the minutes that are left. */
export function firstFailure(
  records: readonly TranscriptRecord[],
  { rows }: Requirements,
  minutesLeft: number,
): string | undefined {
  for (const { requirement, ruling, verdict } of judge(records, rows, CHECKS)) {
    const [first] = verdict === 'fail' && ruling.verdict === 'fail' ? ruling.problems : [];
    const left = plural(Math.max(Math.ceil(minutesLeft), 1), 'minute');
    if (first !== undefined) return `first FAIL, with about ${left} left: ${requirement.id}: ${first.actual}`;
  }
  return undefined;
}
