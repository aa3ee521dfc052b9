import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import { isLoggedIn, workedBefore } from '../../evidence/logins.ts';
import { MOST_ASKED } from '../../scenarios/instances/second-cycle.ts';
import { keptFilesIn } from '../../scenarios/machine/guest.ts';
import { answerOf, isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, shownStatus, stillWaiting, unlessReclaimed } from '../check.ts';

/** A second stop and start of the same instance, after a first one of each that was accepted. */
export const secondCycleChecks: readonly Check[] = [
  {
    id: 'CYCLE-AGAIN-001',
    level: 'full',
    scenarios: ['second-cycle'],
    judge: (evidence) => unlessReclaimed(evidence, judgeAgain(evidence)),
  },
];

interface Half {
  action: 'stop' | 'start';
  /** The status that it must lead to. */
  end: string;
  onTheWay: readonly string[];
}

const STOP: Half = { action: 'stop', end: 'STOPPED', onTheWay: ['STOPPING', 'ONLINE'] };
const START: Half = { action: 'start', end: 'ONLINE', onTheWay: ['STOPPED', 'PROVISIONING'] };

function judgeAgain(evidence: Evidence): Finding {
  const asked = evidence.steps('second-cycle/stop');
  for (const half of [STOP, START]) {
    const finding = judgeHalf(evidence, half);
    if (finding !== undefined) return finding;
  }
  const logins = evidence.loginsAt('second-cycle/login', 'second-cycle/read-file');
  const unlet = logins.find((login) => !isLoggedIn(login) && workedBefore(evidence, login));
  if (unlet !== undefined)
    return judgeEach(
      [unlet],
      'logins after a second start',
      () => ({
        expected: 'the keys log in, as after the first start',
        actual: unlet.message ?? `no further than ${unlet.rung}`,
      }),
      (login) => login,
    );
  return (
    judgeFile(evidence) ?? judgeEachExchange(asked, 'second stops and starts of an instance', () => undefined)
  );
}

/** The problem of one half; undefined if it went as the first time. */
function judgeHalf(evidence: Evidence, { action, end, onTheWay }: Half): Finding | undefined {
  const all = evidence.steps(`second-cycle/${action}`);
  const asked = all.at(-1) as Exchange;
  const fail = (shown: Exchange, problem: Problem): Finding =>
    judgeEachExchange([shown], `second ${action}s of an instance`, () => problem);
  if (statusOf(asked) === 429) return notTested(`the second ${action} was limited: 429`);
  if (statusOf(asked) === 409 && all.length < MOST_ASKED)
    return notTested(`the run ended before the second ${action} was asked for again`);
  if (!isSuccess(asked))
    return fail(asked, {
      expected: `200: the first ${action} of it was accepted`,
      actual: answerOf(asked),
    });
  const last = evidence.steps(`second-cycle/${action}-poll`).at(-1);
  const status = shownStatus(last);
  if (status === end || last === undefined) return undefined;
  return onTheWay.includes(status)
    ? stillWaiting('the instance', status)
    : fail(last, { expected: `${end}, as after the first ${action}`, actual: `it became ${status}` });
}

/** The file of before the first stop, if it was there after the first start. */
function judgeFile(evidence: Evidence): Finding | undefined {
  const [first] = evidence.loginsAt('start/read-file');
  const [second] = evidence.loginsAt('second-cycle/read-file');
  const before = first && keptFilesIn(first).get('home');
  if (second === undefined || !isLoggedIn(second) || !before) return undefined;
  if (keptFilesIn(second).get('home') === before) return undefined;
  return judgeEach(
    [second],
    'disks after a second start',
    () => ({
      expected: `the file that was there after the first start, with ${before.trim()}`,
      actual: 'it is not there: the disk was not preserved',
    }),
    (login) => login,
  );
}
