import type { Evidence } from '../evidence/evidence.ts';
import { duration } from '../evidence/instance-life.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, eachExchange, type Finding, notTested, type Problem } from '../verdict/finding.ts';
import { answerOf } from '../verdict/words.ts';
import { isSuccess, statusOf } from '../wire/json.ts';
import { shownStatus, stillWaiting, unlessCutShort, unlimited } from './answered.ts';
import type { Check } from './check.ts';

/** `Within seconds`: less than the contract's shortest poll interval. */
const FRESH_MS = 10_000;
/** What else can come of a DELETE is judged by the checks of destruction. */
const LIVE = ['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED'];

export const earlyDeleteChecks: readonly Check[] = [
  { id: 'DEL-EARLY-001', level: 'full', scenarios: ['early-delete'], judge: judgeEarly },
  {
    id: 'DEL-TWICE-001',
    level: 'full',
    scenarios: ['early-delete'],
    judge: (evidence) =>
      eachExchange(
        unlimited(evidence.steps('early-delete/delete')),
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
  { id: 'DEL-STOPPED-001', level: 'full', scenarios: ['companion'], judge: judgeStopped },
];

function judgeEarly(evidence: Evidence): Finding {
  const asked = unlimited(evidence.steps('early-delete/delete'));
  const accepted = asked.find(isSuccess);
  if (accepted === undefined)
    return eachExchange(asked, 'DELETEs of a PROVISIONING instance', (exchange) => ({
      expected: '200: PROVISIONING is a live state, and any live state can be destroyed',
      actual: answerOf(exchange),
    }));
  const reads = evidence.steps('early-delete/poll');
  const status = shownStatus(reads.at(-1));
  if (status === 'DESTROYING') return stillWaiting('the instance', status);
  return eachExchange(reads, 'reads after the DELETE of a PROVISIONING instance', afterwards(accepted));
}

/** The destruction wins: for some seconds a replica may still show what was before. */
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
    return eachExchange(unlimited([asked]), 'DELETEs of a STOPPED instance', () => ({
      expected: '200: STOPPED is a live state, and any live state can be destroyed',
      actual: answerOf(asked),
    }));
  const last = evidence.steps('companion/destroy-stopped/poll').at(-1);
  if (last === undefined) return notTested('it was not read afterwards');
  const status = shownStatus(last);
  if (status === 'DESTROYING') return stillWaiting('the instance', status);
  const finding = each(
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
