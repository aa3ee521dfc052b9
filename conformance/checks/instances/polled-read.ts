import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notApplicable, notTested } from '../../evidence/finding.ts';
import { hasGoodCredential } from '../../evidence/instances.ts';
import { ENOUGH_POLLS } from '../../scenarios/instances/observe.ts';
import { duration } from '../../text/wording.ts';
import { isPolledRead, isReadOfOne, isSideBySide, READ_OF_ONE, statusOf } from '../../transcript/exchange.ts';
import type { Exchange, RunRecord } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

/** 95 % of polled reads must be faster than this, without the network round trip. */
export const FAST_MS = 1000;
/** How often the contract's client polls each instance; it also reads the catalogue. */
const CONTRACT_POLL_MS = 10_000;
/** The requests of a client with one instance in that time, with some margin. */
const CONTRACT_REQUESTS = 5;

export const polledReadChecks: readonly Check[] = [
  { id: 'LAT-GET-001', level: 'lifecycle', scenarios: ['boot', 'observe'], judge: judgeLatency },
  { id: 'LAT-GET-002', level: 'lifecycle', scenarios: ['online', 'stop'], judge: judgeLatencySideBySide },
  { id: 'INS-RATE-001', level: 'lifecycle', scenarios: ['boot', 'observe'], judge: judgeRate },
];

function judgeLatency(evidence: Evidence): Finding {
  return judgeReads(evidence, evidence.exchanges.filter(isPolledRead), 'polled reads');
}

function judgeLatencySideBySide(evidence: Evidence): Finding {
  evidence.steps('online/side-by-side');
  if (evidence.sent.some((exchange) => isSideBySide(exchange) && statusOf(exchange) === 429))
    return notApplicable(
      'a rate limit that allows five reads at the same moment',
      'some were answered 429, which is lawful',
    );
  if (judgeLatency(evidence).verdict === 'fail')
    return notTested('reads of an instance are slow one at a time already (LAT-GET-001)');
  const reads = evidence.exchanges.filter((exchange) => isReadOfOne(exchange) && isSideBySide(exchange));
  return judgeReads(evidence, reads, 'reads, five at the same moment');
}

function judgeReads(evidence: Evidence, polls: readonly Exchange[], what: string): Finding {
  if (polls.length < ENOUGH_POLLS)
    return notTested(
      `${polls.length} ${what} are too few to judge their latency by: it takes ${ENOUGH_POLLS}`,
    );
  const roundTrip = roundTripMs(evidence.run);
  const own = (exchange: Exchange): number => Math.max((exchange.answer?.firstByteMs ?? 0) - roundTrip, 0);
  const sorted = polls.toSorted((a, b) => own(a) - own(b));
  const at = (share: number): Exchange | undefined => sorted[Math.ceil(sorted.length * share) - 1];
  const p95 = at(0.95);
  const [p50Ms, p95Ms] = [at(0.5), p95].map((exchange) => (exchange === undefined ? 0 : own(exchange)));
  const measured = `median ${duration(p50Ms ?? 0)}, 95th percentile ${duration(p95Ms ?? 0)} of ${polls.length} ${what}, with the round trip of ${duration(roundTrip)} taken off`;
  if ((p95Ms ?? 0) > FAST_MS)
    return {
      verdict: 'fail',
      of: polls.length,
      problems: [
        {
          expected: `a 95th percentile of at most ${duration(FAST_MS)}`,
          actual: measured,
          ...(p95 !== undefined && { shown: p95 }),
        },
      ],
    };
  return { verdict: 'pass', reason: measured, shown: p95 === undefined ? [] : [p95] };
}

/**
 * A client that asks no more often than the contract's gets no 429. A faster run may lawfully be limited, and waits.
 */
function judgeRate(evidence: Evidence): Finding {
  const asked = evidence.sent.filter(
    (exchange) =>
      exchange.request.method === 'GET' &&
      hasGoodCredential(exchange) &&
      targetOf(exchange) !== undefined &&
      // The clean-up reads instances that are not active any more.
      !(isSideBySide(exchange) || exchange.step.startsWith('cleanup/')),
  );
  const last = new Map<string, number>();
  const atContractsRate = asked.filter((exchange) => {
    const target = targetOf(exchange) ?? '';
    const before = last.get(target);
    last.set(target, exchange.sentAt);
    return (
      before !== undefined &&
      exchange.sentAt - before >= CONTRACT_POLL_MS - 100 &&
      isQuiet(evidence.sent, exchange)
    );
  });
  if (atContractsRate.length < 3)
    return notApplicable(
      'a run at the pace of the client',
      'it polled faster, at which a refusal is lawful: --poll-interval-ms 10000 is the pace of the client',
    );
  return judgeEachExchange(
    atContractsRate,
    'polls and catalogue reads at the rate of the client',
    (exchange) =>
      statusOf(exchange) === 429
        ? { expected: 'an answer: one poll in 10 s for each instance has to be allowed', actual: '429' }
        : undefined,
  );
}

/** Whether the requests of the last ten seconds are no more than the contract's client sends. */
function isQuiet(sent: readonly Exchange[], { n, sentAt }: Exchange): boolean {
  const before = sent[n - 1 - CONTRACT_REQUESTS];
  return before === undefined || sentAt - before.sentAt >= CONTRACT_POLL_MS;
}

/** The target of a request: one instance, or the catalogue. */
function targetOf({ request }: Exchange): string | undefined {
  const [path = ''] = request.path.split('?');
  if (READ_OF_ONE.test(request.path)) return path;
  return path === '/configurations' || path === '/availability' ? path : undefined;
}

/** The network share of each answer's time: the fastest TCP connection; 0 if unknown. */
export function roundTripMs({ roundTripsMs }: RunRecord): number {
  return roundTripsMs.length === 0 ? 0 : Math.min(...roundTripsMs);
}
