import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notApplicable, notTested } from '../../evidence/finding.ts';
import { hasGoodCredential } from '../../evidence/instances.ts';
import { BAD_CREDENTIALS } from '../../scenarios/access/bad-credentials.ts';
import { NO_SUCH_ID } from '../../scenarios/instances/refusal-cases.ts';
import { stringsField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import {
  type Check,
  judgeStatus,
  shownStatus,
  stillWaiting,
  unlessCutShort,
  unlessReclaimed,
  withoutRateLimited,
} from '../check.ts';
import { attachmentProblem, judgeDetachOfNone, namedIn } from './attachment-problem.ts';

const scenarios = ['volumes'];

export const volumeAttachmentChecks: readonly Check[] = [
  {
    id: 'VOL-ATTACH-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeAttaches(evidence, ['volumes/attach', 'volumes/attach-for-all', 'companion/attach']),
  },
  {
    id: 'VOL-ATTACH-002',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeAttaches(evidence, ['volumes/again']),
  },
  {
    id: 'VOL-ATTACH-003',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeStatus(
        evidence.steps('volumes/empty'),
        'attaches without an instance',
        [400],
        '400: `instance_ids` is required, with at least 1 item',
      ),
  },
  { id: 'VOL-ATTACH-004', level: 'full', scenarios, judge: judgeNowhere },
  { id: 'VOL-ATTACH-006', level: 'full', scenarios, judge: judgeInline },
  {
    id: 'VOL-DETACH-001',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeDetach(evidence, 'volumes/detach-one'),
  },
  {
    id: 'VOL-DETACH-002',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeDetach(evidence, 'volumes/detach-all'),
  },
  { id: 'VOL-DETACH-005', level: 'full', scenarios, judge: judgeDetachOfNone },
  {
    id: 'VOL-ATTACH-007',
    level: 'full',
    scenarios: ['companion', 'companion-alone'],
    judge: judgeSecondAttach,
  },
  {
    id: 'VOL-DETACH-003',
    level: 'full',
    scenarios: ['companion', 'companion-alone'],
    judge: judgeDetachOfOne,
  },
  { id: 'VOL-AUTH-001', level: 'full', scenarios, judge: judgeWithoutCredential },
  {
    id: 'VOL-DELETE-001',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeDeleteAttached(evidence, 'volumes/delete-attached', 'volumes/attach/post'),
  },
  {
    id: 'VOL-DELETE-005',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        withoutRateLimited(evidence.steps('volumes/force-delete/delete')),
        'DELETEs at once after a detach that was accepted',
        (exchange) =>
          isSuccess(exchange)
            ? undefined
            : {
                expected: '204: what is left of the attachment is forced off, and is no reason to fail',
                actual: answerOf(exchange),
              },
      ),
  },
];

/**
 * Each step consists of an attach, `<step>/post`, and the polls after it, `<step>/poll`. The first step is required.
 */
function judgeAttaches(evidence: Evidence, steps: readonly string[]): Finding {
  const [first = ''] = steps;
  evidence.steps(`${first}/post`);
  const attaches = steps.flatMap((step) => evidence.anySteps(`${step}/post`));
  const polls = attaches.map(({ step }) => evidence.anySteps(step.replace(/post$/, 'poll')).at(-1));
  if (polls.some((last) => shownStatus(last) === 'ATTACHING')) return stillWaiting('a volume', 'ATTACHING');
  const finding = judgeEachExchange(
    withoutRateLimited(attaches),
    'attaches to an instance that is ONLINE',
    (asked) => {
      if (statusOf(asked) !== 200) return { expected: '200, with the volume', actual: answerOf(asked) };
      const last = polls[attaches.indexOf(asked)];
      return last === undefined ? undefined : attachmentProblem(last, namedIn(asked));
    },
  );
  return unlessReclaimed(evidence, unlessCutShort(evidence, finding));
}

function judgeNowhere(evidence: Evidence): Finding {
  const asked = evidence.step('volumes/nowhere/post');
  const read = evidence.step('volumes/nowhere/read');
  return judgeEachExchange(withoutRateLimited([asked]), 'attaches to an instance that does not exist', () => {
    if (![400, 404, 409].includes(statusOf(asked) ?? 0))
      return { expected: '404, or 400', actual: answerOf(asked) };
    const holders = stringsField(successOf(read), 'attached_instance_ids');
    return holders.includes(NO_SUCH_ID)
      ? {
          expected: 'nothing is attached',
          actual: `attached_instance_ids ${shortJson(holders, 200)}`,
          shown: read,
        }
      : undefined;
  });
}

function judgeInline(evidence: Evidence): Finding {
  const created = evidence.steps('volumes/inline/create').find(isSuccess);
  if (created === undefined) return notTested('no create with instance_ids was accepted');
  const last = evidence.steps('volumes/inline/poll').at(-1);
  if (last === undefined) return notTested('the volume was not read');
  if (['CREATING', 'ATTACHING'].includes(shownStatus(last)))
    return stillWaiting('the volume', shownStatus(last));
  const finding = judgeEachExchange([created], 'creates with instance_ids', () =>
    attachmentProblem(last, namedIn(created)),
  );
  return unlessReclaimed(evidence, unlessCutShort(evidence, finding));
}

function judgeDetach(evidence: Evidence, step: string): Finding {
  const asked = evidence.step(`${step}/post`);
  const last = evidence.anySteps(`${step}/poll`).at(-1);
  if (shownStatus(last) === 'DETACHING') return stillWaiting('the volume', 'DETACHING');
  const finding = judgeEachExchange(withoutRateLimited([asked]), 'detaches', () => {
    if (statusOf(asked) !== 200) return { expected: '200, with the volume', actual: answerOf(asked) };
    if (last === undefined) return undefined;
    const holders = stringsField(successOf(last), 'attached_instance_ids');
    return shownStatus(last) === 'AVAILABLE' && holders.length === 0
      ? undefined
      : {
          expected: 'AVAILABLE, attached to nothing',
          actual: `${shownStatus(last)}, with attached_instance_ids ${shortJson(holders, 200)}`,
          shown: last,
        };
  });
  return unlessReclaimed(evidence, unlessCutShort(evidence, finding));
}

/** An accepted attach to a second instance does not detach the first. */
function judgeSecondAttach(evidence: Evidence): Finding {
  const asked = evidence.step('companion/attach-second/post');
  if (!isSuccess(asked))
    return notApplicable(
      'a volume that several instances share',
      `attaching it to a second instance was answered ${answerOf(asked)}`,
    );
  const first = namedIn(evidence.step('companion/attach/post'));
  const last = evidence.anySteps('companion/attach-second/poll').at(-1);
  if (last === undefined || attachmentProblem(last, namedIn(asked)) !== undefined)
    return notTested('the volume did not come to be attached to the second instance');
  const finding = judgeEachExchange([asked], 'attaches to a second instance that were accepted', () => {
    const problem = attachmentProblem(last, first);
    return problem && { ...problem, expected: `still ${problem.expected}: it was not detached` };
  });
  return unlessReclaimed(evidence, finding);
}

/** Detaching one of two instances that share a volume does not detach the other. */
function judgeDetachOfOne(evidence: Evidence): Finding {
  const asked = evidence.step('companion/detach-one/post');
  const stays = namedIn(evidence.step('companion/attach/post'));
  const both = evidence.anySteps('companion/attach-second/poll').at(-1);
  if (both === undefined || attachmentProblem(both, namedIn(asked)) || attachmentProblem(both, stays))
    return notTested('the volume did not come to be attached to both instances');
  const last = evidence.anySteps('companion/detach-one/poll').at(-1);
  if (shownStatus(last) === 'DETACHING') return stillWaiting('the volume', 'DETACHING');
  const finding = judgeEachExchange(withoutRateLimited([asked]), 'detaches of one of two instances', () => {
    if (statusOf(asked) !== 200) return { expected: '200, with the volume', actual: answerOf(asked) };
    if (last === undefined) return undefined;
    const holders = stringsField(successOf(last), 'attached_instance_ids');
    return holders.includes(namedIn(asked))
      ? {
          expected: `${namedIn(asked)} is no longer in attached_instance_ids`,
          actual: `${shownStatus(last)}, with ${shortJson(holders, 200)}`,
          shown: last,
        }
      : attachmentProblem(last, stays);
  });
  return unlessReclaimed(evidence, unlessCutShort(evidence, finding));
}

/** The steps are `<step>/delete` and `<step>/read`. */
export function judgeDeleteAttached(evidence: Evidence, step: string, attach: string): Finding {
  const asked = evidence.step(`${step}/delete`);
  const read = evidence.step(`${step}/read`);
  const finding = judgeEachExchange(withoutRateLimited([asked]), 'DELETEs of an attached volume', () => {
    if (statusOf(asked) !== 409)
      return {
        expected: '409: the volume is attached, and cannot be deleted',
        actual: answerOf(asked),
      };
    const problem = attachmentProblem(read, namedIn(evidence.step(attach)));
    return problem === undefined ? undefined : { ...problem, expected: `still ${problem.expected}` };
  });
  return unlessReclaimed(evidence, finding);
}

/** Each request without a valid credential is answered 401 and has no effect. */
function judgeWithoutCredential(evidence: Evidence): Finding {
  const holder = namedIn(evidence.step('volumes/attach/post'));
  const names = Object.keys(BAD_CREDENTIALS).map((name) => `volumes/${name}`);
  const asked = evidence.steps(...names).filter((exchange) => !hasGoodCredential(exchange));
  const finding = judgeEachExchange(
    withoutRateLimited(asked),
    'reads, detaches and DELETEs of an attached volume without a good credential',
    (exchange) => {
      if (statusOf(exchange) !== 401) return { expected: '401', actual: answerOf(exchange) };
      const after = evidence.anySteps(exchange.step.replace(/\w+$/, 'after')).at(-1);
      const before = evidence.anySteps(exchange.step.replace(/\w+$/, 'before')).at(-1);
      const isLast = exchange.request.method === 'DELETE';
      if (!isLast || after === undefined || attachmentProblem(before ?? after, holder)) return undefined;
      const problem = attachmentProblem(after, holder);
      return problem && { ...problem, expected: `still ${problem.expected}: it was refused` };
    },
  );
  return unlessReclaimed(evidence, finding);
}
