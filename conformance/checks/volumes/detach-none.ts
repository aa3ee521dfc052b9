import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange } from '../../evidence/finding.ts';
import { answerOf, statusOf } from '../../transcript/exchange.ts';
import { unlessReclaimed, withoutRateLimited } from '../check.ts';
import { attachmentProblem, namedIn } from './attachment-problem.ts';

/** An empty list of instances is not an omitted one. */
export function judgeDetachOfNone(evidence: Evidence): Finding {
  const asked = evidence.step('volumes/detach-none/post');
  const read = evidence.step('volumes/detach-none/read');
  const holder = namedIn(evidence.step('volumes/attach/post'));
  const finding = judgeEachExchange(withoutRateLimited([asked]), 'detaches from an empty list', () => {
    if (![200, 400].includes(statusOf(asked) ?? 0))
      return { expected: '200 with the volume as it was, or 400', actual: answerOf(asked) };
    const problem = attachmentProblem(read, holder);
    return problem && { ...problem, expected: `still ${problem.expected}: no instance was named` };
  });
  return unlessReclaimed(evidence, finding);
}
