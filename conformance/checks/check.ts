import type { Evidence } from '../evidence/evidence.ts';
import {
  type Finding,
  judgeEachExchange,
  MissingEvidence,
  notTested,
  type Problem,
  refuseTooLong,
} from '../evidence/finding.ts';
import { isEnd } from '../evidence/instances.ts';
import { RECLAIMED } from '../scenarios/scenario.ts';
import { isObject, stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { answerOf, jsonOf, requestOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange, Level } from '../transcript/records.ts';

/** Judges a requirement by the records of a run. It sends no requests. */
export interface Check {
  /** The id of the main requirement that it proves, in requirements.yaml. */
  id: string;
  /** The lowest level whose runs record enough for it. */
  level: Level;
  /** The scenarios that it needs, which a run of only this check executes. */
  scenarios: readonly string[];
  /** May throw `MissingEvidence`, as the evidence does if a step is missing. */
  judge(evidence: Evidence): Finding;
}

/**
 * The exchanges that were not rate-limited: a 429 is lawful for anything but a poll. Throws `MissingEvidence` if all of
 * them were.
 */
export function withoutRateLimited(exchanges: readonly Exchange[]): Exchange[] {
  const left = exchanges.filter((exchange) => statusOf(exchange) !== 429);
  if (left.length === 0 && exchanges.length > 0)
    throw new MissingEvidence(
      notTested('every request for it was limited: 429, however long the run waited'),
    );
  return left;
}

/**
 * The answered exchanges of steps. WIRE-REACH-001 reports missing answers, and a rate limit is not a refusal, so both
 * are left out. Throws `MissingEvidence` if the steps were not taken.
 */
export function answersOf(evidence: Evidence, ...steps: readonly string[]): Exchange[] {
  const asked = evidence.steps(...steps);
  const found = asked.filter(({ answer }) => answer !== undefined && answer.status !== 429);
  if (found.length === 0) refuseTooLong(asked);
  return found;
}

/** Each exchange must be answered with one of the statuses. Rate-limited ones are left out. */
export function judgeStatus(
  exchanges: readonly Exchange[],
  /** A plural noun for the exchanges. */
  what: string,
  statuses: readonly number[],
  /** The expected answer, in words. */
  expected: string | ((exchange: Exchange) => string),
): Finding {
  return judgeEachExchange(withoutRateLimited(exchanges), what, (exchange) =>
    statuses.includes(statusOf(exchange) ?? 0)
      ? undefined
      : {
          expected: typeof expected === 'string' ? expected : expected(exchange),
          actual: answerOf(exchange),
        },
  );
}

/** The status that a read shows: that of the resource, or `404`. */
export function shownStatus(exchange: Exchange | undefined): string {
  if (exchange === undefined) return 'not read';
  const status = stringField(successOf(exchange), 'status');
  return status === undefined ? answerOf(exchange) : printable(status, 60);
}

/** The finding for a wait that timed out. */
export function stillWaiting(what: string, status: string): Finding {
  return notTested(
    `${what} was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
  );
}

/** Turns a failure into `not_tested` if it was seen only after a SPOT instance had been reclaimed. */
export function unlessReclaimed({ instances }: Evidence, finding: Finding): Finding {
  if (finding.verdict !== 'fail') return finding;
  const ends = instances
    .filter(({ reclaimed }) => reclaimed !== undefined)
    .map(({ observations }) => observations.findLast(({ status }) => status !== '404' && !isEnd(status)));
  const end = Math.min(...ends.map((observation) => observation?.exchange.sentAt ?? 0));
  return finding.problems.every(({ shown }) => shown !== undefined && shown.endedAt >= end)
    ? notTested(RECLAIMED)
    : finding;
}

/** Turns a failure into `not_tested` if all its problems are in the step during which the run was cut short. */
export function unlessCutShort(evidence: Evidence, finding: Finding): Finding {
  if (finding.verdict !== 'fail' || evidence.end?.reason === 'completed') return finding;
  const last = evidence.exchanges.findLast(({ step }) => !step.startsWith('cleanup/'));
  const isLast = finding.problems.every(
    ({ shown }) => shown !== undefined && `${last?.step}/`.startsWith(`${shown.step}/`),
  );
  return isLast ? notTested('the run ended while it waited for this') : finding;
}

export function listProblem(exchange: Exchange, field: string): Problem | undefined {
  const body = jsonOf(exchange);
  if (statusOf(exchange) === 200 && isObject(body) && Array.isArray(body[field])) return undefined;
  return {
    expected: `200 with {"${field}": […]}`,
    actual: `${answerOf(exchange)}, to ${requestOf(exchange)}`,
  };
}
