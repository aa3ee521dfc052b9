import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, type Problem } from '../../evidence/finding.ts';
import { showsAttachments } from '../../scenarios/volumes/volume-steps.ts';
import { parseJson, stringsField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { shownStatus, unlessReclaimed, withoutRateLimited } from '../check.ts';

/** The problem of a read that does not show the volume attached to the instance. The list of instances is optional. */
export function attachmentProblem(read: Exchange, instanceId: string): Problem | undefined {
  const shown = successOf(read);
  const expected = `ATTACHED, with ${instanceId} in attached_instance_ids`;
  if (shownStatus(read) !== 'ATTACHED') return { expected, actual: shownStatus(read), shown: read };
  const holders = stringsField(shown, 'attached_instance_ids');
  return showsAttachments(shown) && !holders.includes(instanceId)
    ? { expected, actual: `ATTACHED, with ${shortJson(holders, 200)}`, shown: read }
    : undefined;
}

/** The single instance that an attach, a detach or a create names. */
export function namedIn({ request }: Exchange): string {
  return stringsField(parseJson(request.body), 'instance_ids')[0] ?? '';
}

/** An empty list of instances is not an omitted one. */
export function judgeDetachOfNone(evidence: Evidence): Finding {
  const asked = evidence.step('volumes/detach-none/post');
  const first = evidence.step('volumes/detach-none/read');
  // A replica may be behind in the first read.
  const read = evidence.anySteps('volumes/detach-none/poll').at(-1) ?? first;
  const holder = namedIn(evidence.step('volumes/attach/post'));
  const finding = judgeEachExchange(withoutRateLimited([asked]), 'detaches from an empty list', () => {
    if (![200, 400].includes(statusOf(asked) ?? 0))
      return { expected: '200 with the volume as it was, or 400', actual: answerOf(asked) };
    const problem = attachmentProblem(read, holder);
    return problem && { ...problem, expected: `still ${problem.expected}: no instance was named` };
  });
  return unlessReclaimed(evidence, finding);
}
