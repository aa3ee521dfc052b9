import { missedCaches, type Window } from '../../evidence/caches.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notTested, type Problem } from '../../evidence/finding.ts';
import { FRESH_MS, type InstanceTimeline } from '../../evidence/instances.ts';
import { lists } from '../../scenarios/catalog/catalog.ts';
import { answerOf, isBeyondQuota, isSuccess } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { heldBefore, raced } from './place.ts';

/** A stale list is seen in the read that follows the second refusal, at the latest so long after the sale. */
const SEEN_AFTER_MS = FRESH_MS + 2000;

/** Judges whether the offer leaves the list within seconds once its last unit is sold. The run sells it out twice. */
export function judgeTakenOut(evidence: Evidence): Finding {
  const [first, second] = [judgeRace(evidence), judgeRefill(evidence)];
  if (first.verdict !== 'pass') return first;
  if (second?.verdict === 'fail') return second;
  const windows = [windowOfRace(evidence), second && windowOfRefill(evidence)].filter(
    (one) => one !== undefined,
  );
  const reads = windows.length === 1 ? 'a read' : `${windows.length} reads`;
  return {
    ...first,
    reason: `${reads} of /availability after the last unit was sold, without it; ${missedCaches('/availability', windows)}`,
  };
}

/** An offer that is still listed some seconds after a refusal, is refused again, and is listed even after that. */
function judgeRace(evidence: Evidence): Finding {
  const reads = evidence.steps('race/availability-after-refusal');
  const [again] = evidence.anySteps('race/create-again');
  const last = reads.at(-1);
  if (last === undefined || !isSuccess(last))
    return notTested(`the read of /availability was answered ${last === undefined ? '' : answerOf(last)}`);
  if (lists(last, raced(evidence)) && (again === undefined || last.n < again.n))
    return notTested('the run ended before the create that was refused was asked for again');
  const others = again === undefined ? [] : heldBefore(evidence, again).filter(isOfOther);
  if (lists(last, raced(evidence)) && again !== undefined && (isBeyondQuota(again) || others.length > 0))
    return notTested('the account’s quota was reached, or the run held other instances');
  return judgeEachExchange([last], 'reads of /availability after a 409', () =>
    stillListed(evidence, reads, again),
  );
}

const isOfOther = ({ created }: InstanceTimeline): boolean => created?.step !== 'race/create';

/** Undefined if the offer was not sold out a second time. */
function judgeRefill(evidence: Evidence): Finding | undefined {
  const reads = evidence.anySteps('race/refill/after');
  const [again] = evidence.anySteps('race/refill/create-again');
  const last = reads.at(-1);
  if (last === undefined || !isSuccess(last)) return undefined;
  if (lists(last, raced(evidence)) && (again === undefined || last.n < again.n || isSuccess(again)))
    return undefined;
  return judgeEachExchange([last], 'reads of /availability after a second sale', () =>
    stillListed(evidence, reads, again),
  );
}

function stillListed(
  evidence: Evidence,
  reads: readonly Exchange[],
  again: Exchange | undefined,
): Problem | undefined {
  const place = raced(evidence);
  const last = reads.at(-1);
  if (last === undefined || again === undefined || isSuccess(again) || !lists(last, place)) return undefined;
  return {
    expected: `${place.configurationId} is not listed in ${place.region}, where creates of it were refused`,
    actual: `it is listed with available true, ${reads.length} times; the create was answered ${answerOf(again)}`,
  };
}

function windowOfRace(evidence: Evidence): Window | undefined {
  const sold = evidence.steps('race/create').findLast(isSuccess);
  return sold && windowOf(sold, Number.NEGATIVE_INFINITY);
}

/** A copy from between the end of the first instance and the second sale lists the freed unit. */
function windowOfRefill(evidence: Evidence): Window | undefined {
  const [freed] = evidence.anySteps('race/refill/before');
  const [sold] = evidence.anySteps('race/refill/create');
  const gone = evidence.anySteps('race/destroy/list').find(({ n }) => freed !== undefined && n < freed.n);
  return sold === undefined || !isSuccess(sold) ? undefined : windowOf(sold, gone?.sentAt ?? sold.sentAt);
}

function windowOf({ sentAt, endedAt }: Exchange, oldFrom: number): Window {
  return { oldFrom, oldUntil: sentAt, readsAt: [endedAt + SEEN_AFTER_MS] };
}
