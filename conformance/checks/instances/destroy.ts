import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notTested,
  type Problem,
} from '../../evidence/finding.ts';
import { FRESH_MS, firstBack, firstGone, isEnd, type Observation } from '../../evidence/instances.ts';
import { READ_AGAIN_MS, READ_AGAIN_STEP } from '../../resources/read-again.ts';
import { stringField } from '../../text/json.ts';
import { duration } from '../../text/wording.ts';
import { answerOf, isSuccess, listOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { DESTROYED_SHOWN_MS } from '../../waiting/wait-limiter.ts';
import {
  type Check,
  shownStatus,
  stillWaiting,
  unlessCutShort,
  unlessReclaimed,
  withoutRateLimited,
} from '../check.ts';

const scenarios = ['destroy'];

export const destroyChecks: readonly Check[] = [
  {
    id: 'DEL-STAYS-001',
    level: 'lifecycle',
    scenarios: ['boot', 'destroy'],
    judge: judgeStays,
  },
  {
    id: 'DEL-200-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      unlessReclaimed(
        evidence,
        judgeEachExchange(evidence.steps('destroy/delete'), 'DELETEs of a live instance', (exchange) =>
          statusOf(exchange) === 200 && isEnd(shown(exchange))
            ? undefined
            : {
                expected: '200, with the instance DESTROYING or DESTROYED',
                actual: answerOf(exchange),
              },
        ),
      ),
  },
  {
    id: 'DEL-GONE-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeGone,
  },
  {
    id: 'DEL-AGAIN-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('destroy/delete-again'),
        'DELETEs of an instance that is being destroyed',
        (exchange) =>
          isIdempotent(exchange, ['DESTROYING', 'DESTROYED'])
            ? undefined
            : { expected: '200 with DESTROYING or DESTROYED, or 404', actual: answerOf(exchange) },
      ),
  },
  {
    id: 'DEL-AGAIN-002',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('destroy/gone/delete'),
        'DELETEs of an instance that is gone',
        (exchange) =>
          isIdempotent(exchange, ['DESTROYED'])
            ? undefined
            : { expected: '404, or 200 with DESTROYED', actual: answerOf(exchange) },
      ),
  },
];

const shown = (exchange: Exchange): string => stringField(successOf(exchange), 'status') ?? '';

function isIdempotent(exchange: Exchange, statuses: readonly string[]): boolean {
  return statusOf(exchange) === 404 || (statusOf(exchange) === 200 && statuses.includes(shown(exchange)));
}

/** A destroyed instance is read again at the end of the run, when no replica can still show what was. */
function judgeStays(evidence: Evidence): Finding {
  evidence.steps('create/post');
  const lives = evidence.instancesAtEnd.flatMap((timeline) => {
    const gone = firstGone(timeline);
    const last = timeline.observations.findLast(
      ({ exchange }) => exchange.step === READ_AGAIN_STEP,
    )?.exchange;
    return gone === undefined || last === undefined ? [] : [{ gone, last, timeline }];
  });
  if (lives.length === 0) return notTested('no destroyed instance was read again at the end of the run');
  const finding = judgeEach(
    lives,
    'destroyed instances, read again at the end',
    ({ gone, timeline }) => {
      const back = firstBack(timeline);
      return (
        back && {
          ...backProblem(timeline.id, gone, back),
          shown: back.exchange,
        }
      );
    },
    ({ last }) => last,
  );
  const shortest = Math.min(...lives.map(({ gone, last }) => last.sentAt - gone.endedAt));
  return finding.verdict !== 'pass' || shortest >= READ_AGAIN_MS
    ? finding
    : notTested(
        `it was read again ${duration(shortest)} after it was gone, and it takes ${duration(READ_AGAIN_MS)} (the clean-up was cut short)`,
      );
}

function backProblem(id: string, gone: Exchange, { status, source, exchange }: Observation): Problem {
  const was = statusOf(gone) === 404 ? '404' : 'DESTROYED';
  const later = duration(exchange.sentAt - gone.endedAt);
  return {
    expected: `${id}, which read 404 or DESTROYED after its DELETE, stays destroyed`,
    actual: `it read ${was}, and ${later} later ${source === 'list' ? 'GET /instances lists it as' : 'it reads'} ${status}: it is back, and was destroyed again`,
  };
}

function judgeGone(evidence: Evidence): Finding {
  const polls = evidence.steps('destroy/poll');
  const last = polls.at(-1);
  const status = last === undefined ? '' : shown(last);
  const destroyed = polls.filter((read) => shown(read) === 'DESTROYED');
  const shownMs = (destroyed.at(-1)?.sentAt ?? 0) - (destroyed[0]?.sentAt ?? 0);
  if (shownMs > DESTROYED_SHOWN_MS)
    return judgeEachExchange(destroyed.slice(-1), 'destructions', () => ({
      expected: `404 within ${duration(DESTROYED_SHOWN_MS)} of the first read that showed DESTROYED`,
      actual: `still 200 with DESTROYED after ${duration(shownMs)}`,
    }));
  if (isEnd(status))
    return notTested(
      `it was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  return judgeEach(
    [last],
    'destructions',
    (exchange) =>
      exchange !== undefined && statusOf(exchange) === 404
        ? undefined
        : { expected: '404', actual: exchange === undefined ? 'no read' : answerOf(exchange) },
    (exchange) => exchange,
  );
}

/** The other outcomes of a DELETE are judged elsewhere. */
const LIVE = ['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED'];

export const earlyDeleteChecks: readonly Check[] = [
  { id: 'DEL-EARLY-001', level: 'full', scenarios: ['early-delete'], judge: judgeEarly },
  {
    id: 'DEL-TWICE-001',
    level: 'full',
    scenarios: ['early-delete'],
    judge: (evidence) =>
      judgeEachExchange(
        withoutRateLimited(evidence.steps('early-delete/delete')),
        'DELETEs of one instance at the same moment',
        (exchange) =>
          isSuccess(exchange) || statusOf(exchange) === 404
            ? undefined
            : {
                expected: '200, or 404 where the other was quicker: DELETE is idempotent',
                actual: answerOf(exchange),
              },
      ),
  },
  { id: 'DEL-STOPPED-001', level: 'full', scenarios: ['companion', 'companion-alone'], judge: judgeStopped },
];

function judgeEarly(evidence: Evidence): Finding {
  const asked = withoutRateLimited(evidence.steps('early-delete/delete'));
  const accepted = asked.find(isSuccess);
  if (accepted === undefined)
    return judgeEachExchange(asked, 'DELETEs of a PROVISIONING instance', (exchange) => ({
      expected: '200: PROVISIONING is a live state, and any live state can be destroyed',
      actual: answerOf(exchange),
    }));
  const reads = evidence.steps('early-delete/poll');
  const status = shownStatus(reads.at(-1));
  if (status === 'DESTROYING') return stillWaiting('the instance', status);
  const finding = judgeEachExchange(
    reads,
    'reads after the DELETE of a PROVISIONING instance',
    afterwards(accepted),
  );
  const listed = aliveInLastList(evidence, accepted);
  if (finding.verdict !== 'pass' || listed === undefined) return finding;
  return judgeEachExchange([listed.exchange], 'lists at the end of the run', () => ({
    expected: 'a list without it: the DELETE was accepted',
    actual: `${listed.status} in the last list of the run, ${duration(listed.exchange.sentAt - accepted.endedAt)} after it`,
  }));
}

/** The instance in the last list of the run, if that shows it alive. */
function aliveInLastList({ exchanges, instances }: Evidence, asked: Exchange): Observation | undefined {
  const last = exchanges.findLast(
    (exchange) =>
      exchange.request.path === '/instances' &&
      listOf(exchange) !== undefined &&
      !exchange.step.startsWith('cleanup/'),
  );
  return instances
    .find(({ deletes }) => deletes.includes(asked))
    ?.observations.find(({ exchange, status }) => exchange === last && LIVE.includes(status));
}

/** The destruction wins over the boot; a replica may show the old state for some seconds. */
function afterwards(accepted: Exchange): (read: Exchange) => Problem | undefined {
  return (read) => {
    const ageMs = read.sentAt - accepted.endedAt;
    if (!LIVE.includes(shownStatus(read)) || ageMs <= FRESH_MS) return undefined;
    return {
      expected: 'DESTROYING, DESTROYED or 404: the DELETE was accepted',
      actual: `${shownStatus(read)}, ${duration(ageMs)} after it`,
    };
  };
}

function judgeStopped(evidence: Evidence): Finding {
  const asked = evidence.step('companion/destroy-stopped/delete');
  if (!isSuccess(asked))
    return judgeEachExchange(withoutRateLimited([asked]), 'DELETEs of a STOPPED instance', () => ({
      expected: '200: STOPPED is a live state, and any live state can be destroyed',
      actual: answerOf(asked),
    }));
  const last = evidence.steps('companion/destroy-stopped/poll').at(-1);
  if (last === undefined) return notTested('it was not read afterwards');
  const status = shownStatus(last);
  if (status === 'DESTROYING') return stillWaiting('the instance', status);
  const finding = judgeEach(
    [last],
    'DELETEs of a STOPPED instance',
    () =>
      LIVE.includes(status)
        ? { expected: 'DESTROYED or 404', actual: `still ${status} when the run gave up` }
        : undefined,
    (exchange) => exchange,
  );
  return unlessCutShort(evidence, finding);
}
