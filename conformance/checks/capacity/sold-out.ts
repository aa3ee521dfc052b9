import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notApplicable, notTested } from '../../evidence/finding.ts';
import { lists, type Place } from '../../scenarios/catalog/catalog.ts';
import { PUT_BACK_MS } from '../../scenarios/instances/purchase.ts';
import { duration } from '../../text/wording.ts';
import { answerOf, codeOfConflict, isBeyondQuota, isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { type Check, judgeStatus, withoutRateLimited } from '../check.ts';
import { placeOf, raced } from './place.ts';
import { judgeTakenOut } from './taken-out.ts';

export const soldOutChecks: readonly Check[] = [
  { id: 'AVL-SOLDOUT-001', level: 'lifecycle', scenarios: ['sold-out'], judge: judgeSoldOut },
  { id: 'AVL-SOLDOUT-002', level: 'lifecycle', scenarios: ['sold-out'], judge: judgeCode },
  { id: 'AVL-SOLDOUT-003', level: 'lifecycle', scenarios: ['sold-out'], judge: judgeDrained },
  { id: 'AVL-GATE-001', level: 'lifecycle', scenarios: ['create'], judge: judgeGate },
  { id: 'AVL-REALTIME-001', level: 'full', scenarios: ['race'], judge: judgeTakenOut },
  { id: 'AVL-REALTIME-002', level: 'full', scenarios: ['race'], judge: judgePutBack },
];

function judgeSoldOut(evidence: Evidence): Finding {
  return judgeSoldTwice(evidence, {
    step: 'sold-out/create',
    what: 'creates of a sold-out offer',
    why: ({ configurationId }) => `${configurationId} is listed with available false`,
  });
}

function judgeDrained(evidence: Evidence): Finding {
  return judgeSoldTwice(evidence, {
    step: 'sold-out/drained/create',
    what: 'creates in a drained region',
    why: ({ configurationId, region }) =>
      `/availability lists ${configurationId} elsewhere, and not in ${region}`,
  });
}

/**
 * A unit may have become free just before one sale, so only two sales count. Each create follows a read that shows no
 * capacity.
 */
function judgeSoldTwice(
  evidence: Evidence,
  { step, what, why }: { step: string; what: string; why: (place: Place) => string },
): Finding {
  const asked = withoutRateLimited(evidence.steps(step));
  const last = asked.at(-1);
  if (last === undefined) return notTested('it was not asked for');
  const place = placeOf(last);
  const after = evidence.anySteps('sold-out/availability').find((read) => read.n > last.n && isSuccess(read));
  if (isSuccess(last) && (asked.length === 1 || (after !== undefined && lists(after, place))))
    return notTested(`${place.configurationId} became available in ${place.region} in the meantime`);
  return judgeStatus([last], what, [409], `409: ${why(place)}`);
}

function judgeCode(evidence: Evidence): Finding {
  const conflicts = evidence
    .anySteps('sold-out', 'race/create', 'race/create-again', 'create/post')
    .filter((exchange) => exchange.request.path === '/instances' && statusOf(exchange) === 409)
    .filter((exchange) => !isBeyondQuota(exchange));
  if (conflicts.length === 0) {
    const asked = evidence.step('sold-out/create');
    return notTested(`no create was refused for capacity: this one was answered ${answerOf(asked)}`);
  }
  return judgeEachExchange(conflicts, 'creates that were refused for capacity', (exchange) => {
    const code = codeOfConflict(exchange);
    return code === 'capacity_unavailable'
      ? undefined
      : { expected: 'code capacity_unavailable', actual: `code ${code ?? 'absent'}` };
  });
}

/** An offer that is listed and refused, still listed seconds later, refused again, and listed even after that. */
function judgeGate(evidence: Evidence): Finding {
  const asked = evidence.steps('create/post');
  const reads = evidence.anySteps('create/availability-after-refusal').filter(isSuccess);
  const refused = asked.filter((exchange) => statusOf(exchange) === 409 && !isBeyondQuota(exchange));
  const finding = judgeEachExchange(asked, 'creates of listed offers', (exchange) => {
    const place = placeOf(exchange);
    const ofPlace = refused.filter((other) => samePlace(placeOf(other), place));
    if (ofPlace.length < 2 || exchange !== ofPlace.at(-1)) return undefined;
    const isListedAfter = (one: Exchange): boolean => {
      const next = asked.find((other) => other.n > one.n)?.n ?? Number.POSITIVE_INFINITY;
      const last = reads.findLast(({ n }) => n > one.n && n < next);
      return last !== undefined && lists(last, place);
    };
    return ofPlace.every(isListedAfter)
      ? {
          expected: `201, or ${place.configurationId} no more listed in ${place.region}: /availability is the deploy-time gate`,
          actual: `${ofPlace.length} creates of it were refused with 409, and it is still listed with available true`,
        }
      : undefined;
  });
  return finding.verdict === 'pass' && refused.length === 0
    ? { ...finding, reason: `${asked.length} creates of listed offers, none refused` }
    : finding;
}

function judgePutBack(evidence: Evidence): Finding {
  const left = evidence.instances.filter(
    ({ resource }) => resource.step === 'race/create' && resource.state !== 'gone',
  );
  if (left.length > 0) return notTested(`${left.length} instances of the race were not seen to be gone`);
  const reads = evidence.steps('race/availability-after-destruction');
  const last = reads.at(-1);
  const place = raced(evidence);
  const { race } = evidence.run.settings;
  if (last === undefined || !lists(last, place)) {
    if (race === undefined)
      return notTested('others may have taken the freed unit: --race needs an offer without other customers');
    if (!evidence.instances.some(({ resource }) => resource.step === 'race/create'))
      return notApplicable('an offer with a free unit', 'no create of the race was accepted');
  }
  const waitedMs = (last?.endedAt ?? 0) - (reads[0]?.sentAt ?? 0);
  if (last !== undefined && !lists(last, place) && waitedMs < PUT_BACK_MS)
    return notTested(`it was not listed again within ${duration(waitedMs)}, when the run ended`);
  return judgeEachExchange(
    last === undefined ? [] : [last],
    'reads of /availability after the destruction',
    (exchange) =>
      lists(exchange, place)
        ? undefined
        : {
            expected: `${place.configurationId} is listed in ${place.region} again within ${duration(PUT_BACK_MS)}, after its instances were destroyed`,
            actual: 'it is not listed',
          },
  );
}

function samePlace(one: Place, other: Place): boolean {
  return one.configurationId === other.configurationId && one.region === other.region;
}
