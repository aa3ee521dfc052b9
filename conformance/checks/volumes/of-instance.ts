import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  notTested,
} from '../../evidence/finding.ts';
import { isLoggedIn } from '../../evidence/logins.ts';
import { diskSizes } from '../../scenarios/machine/guest.ts';
import { partsOf } from '../../scenarios/machine/printed.ts';
import { numberField, stringsField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { SshRecord } from '../../transcript/records.ts';
import { type Check, shownStatus, unlessCutShort, unlessReclaimed, withoutRateLimited } from '../check.ts';
import { attachmentProblem, namedIn } from './attachment-problem.ts';
import { judgeDeleteAttached } from './attachments.ts';

const scenarios = ['companion', 'companion-alone'];

/** The steps after the instance that held the volume was destroyed. */
export const AFTER_INSTANCE = 'companion/released/';

/** What happens to a volume when its instance is stopped, started and destroyed. */
export const volumeOfInstanceChecks: readonly Check[] = [
  {
    id: 'VOL-STOP-001',
    level: 'full',
    scenarios,
    judge: (evidence) => judgeDeleteAttached(evidence, 'companion/stopped', 'companion/attach/post'),
  },
  { id: 'VOL-STOP-002', level: 'full', scenarios, judge: judgeStaysAttached },
  { id: 'VOL-STOP-003', level: 'full', scenarios, judge: judgeSeenAfterStart },
  { id: 'VOL-OUTLIVE-001', level: 'full', scenarios, judge: judgeOutlives },
  { id: 'VOL-RELEASE-001', level: 'full', scenarios, judge: judgeReleased },
];

function judgeStaysAttached(evidence: Evidence): Finding {
  const reads = evidence.steps('companion/stopped/before', 'companion/started/read');
  const holder = namedIn(evidence.step('companion/attach/post'));
  const last = evidence.anySteps('companion/attach/poll', 'companion/detach-one/poll').at(-1);
  if (last !== undefined && attachmentProblem(last, holder) !== undefined)
    return notTested('the volume was no longer attached before the stop');
  const finding = judgeEachExchange(
    withoutRateLimited(reads),
    'reads of a volume after a stop, and after a start, of its instance',
    (read) => {
      const problem = attachmentProblem(read, holder);
      return problem && { ...problem, expected: `still ${problem.expected}: it was not detached` };
    },
  );
  return unlessReclaimed(evidence, finding);
}

function judgeSeenAfterStart(evidence: Evidence): Finding {
  const [before] = evidence.loginsAt('companion/before-stop');
  const [after] = evidence.loginsAt('companion/started/login');
  const sizeGb = numberField(successOf(evidence.step('companion/started/read')), 'size_gb');
  if (before === undefined || after === undefined || !isLoggedIn(after) || sizeGb === undefined)
    return notTested('after the start no login succeeded, or the volume could not be read');
  const seen = signsOfVolume(before, sizeGb);
  if (seen.length === 0)
    return notApplicable(
      'a volume that is seen inside the machine',
      `the machine showed no disk of ${sizeGb} GB and no mount that could be it`,
    );
  const left = signsOfVolume(after, sizeGb);
  return judgeEach(
    seen,
    'disks and mounts',
    (sign) =>
      left.includes(sign)
        ? undefined
        : { expected: `${sign}, as before the stop`, actual: 'the machine does not show it after the start' },
    () => after,
  );
}

/** The folders whose mounts are the system's own. */
const OF_THE_SYSTEM = /^\/(?:$|(?:proc|sys|dev|run|tmp|boot|efi|snap|etc|var)(?:\/|$))/;

/** The disks of about the size of the volume, and the mounts that are not the system's own. */
function signsOfVolume(login: SshRecord, sizeGb: number): string[] {
  const parts = partsOf(login);
  const isOfSize = (bytes: number) => bytes >= sizeGb * 0.99e9 && bytes <= sizeGb * 1.1e9;
  const mounts = [...(parts.get('mounts') ?? '').matchAll(/^\S+ (\/\S*) /gm)].map(([, path = '']) => path);
  return [
    // A start may give a disk another name.
    ...diskSizes(parts.get('disks'))
      .filter(isOfSize)
      .map((_, index) => `disk ${index + 1} of ${sizeGb} GB`),
    ...mounts.filter((path) => !OF_THE_SYSTEM.test(path)).map((path) => `a mount at ${path}`),
  ];
}

function judgeOutlives(evidence: Evidence): Finding {
  evidence.steps('companion/destroy/delete', 'companion/destroy-stopped/delete');
  const reads = evidence.steps(`${AFTER_INSTANCE}poll`);
  const finding = judgeEachExchange(
    withoutRateLimited(reads),
    'reads of a volume after its instance was destroyed',
    (read) =>
      statusOf(read) === 404
        ? { expected: 'the volume: only its instance was deleted', actual: '404' }
        : undefined,
  );
  return unlessReclaimed(evidence, finding);
}

/** A destroyed instance releases its volumes. */
function judgeReleased(evidence: Evidence): Finding {
  const asked = evidence.step('companion/released/delete');
  const last = evidence.steps('companion/released/poll').at(-1);
  const ends = ['companion/destroy/poll', 'companion/destroy-stopped/poll'];
  const end = evidence.anySteps(...ends).at(-1);
  if (end === undefined || (statusOf(end) !== 404 && shownStatus(end) !== 'DESTROYED'))
    return notTested(
      `the instance that held the volume was not seen to be gone: it read ${shownStatus(end)}`,
    );
  if (last === undefined || statusOf(last) === 404) return notTested('the volume could not be read');
  const gone = decodeURIComponent(end.request.path.split('?')[0]?.split('/')[2] ?? '');
  const holders = stringsField(successOf(last), 'attached_instance_ids');
  const others = holders.filter((id) => id !== gone);
  if (others.length > 0)
    return notTested(`the volume is still attached to ${others.join(', ')}, which lives`);
  const finding = judgeEachExchange(
    withoutRateLimited([asked]),
    'volumes of an instance that is gone',
    () => {
      if (holders.length > 0 || ['ATTACHED', 'DETACHING'].includes(shownStatus(last)))
        return {
          expected: `attached to nothing: ${gone} is gone`,
          actual: `${shownStatus(last)}, with ${shortJson(holders, 200)}`,
          shown: last,
        };
      return isSuccess(asked)
        ? undefined
        : { expected: '204: nothing holds the volume any more', actual: answerOf(asked) };
    },
  );
  return unlessReclaimed(evidence, unlessCutShort(evidence, finding));
}
