import type { Evidence } from '../evidence/evidence.ts';
import {
  type Finding,
  judgeEachExchange,
  MissingEvidence,
  notTested,
  type Problem,
} from '../evidence/finding.ts';
import { isEnd } from '../evidence/instances.ts';
import { RECLAIMED } from '../scenarios/scenario.ts';
import { isObject, textField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { answerOf, jsonOf, requestOf, statusOf, successOf } from '../transcript/exchange.ts';
import type { Exchange, Level } from '../transcript/records.ts';

/** What proves a requirement: a function of what a run saw. It asks nothing of the network. */
export interface Check {
  /** The id of the requirement in requirements.yaml that it is named after. */
  id: string;
  /** The lowest level at which a run sees enough. */
  level: Level;
  /** The scenarios in which it is seen: what a run of this check alone has to do. */
  scenarios: readonly string[];
  /** May throw `MissingEvidence`, which the evidence does where a step is missing. */
  judge(evidence: Evidence): Finding;
}

/**
 * Those that were not refused by a limit on how often may be asked, which is lawful of what is no poll. Throws
 * `MissingEvidence` where there are some and none is left.
 */
export function withoutRateLimited(exchanges: readonly Exchange[]): Exchange[] {
  const left = exchanges.filter((exchange) => statusOf(exchange) !== 429);
  if (left.length === 0 && exchanges.length > 0)
    throw new MissingEvidence(
      notTested('every request for it was limited: 429, however long the run waited'),
    );
  return left;
}

/** Whether it was refused because the account has as much as it may have: lawful, and nothing about the capacity. */
export function isBeyondQuota(exchange: Exchange): boolean {
  return codeOfConflict(exchange) === 'quota_exceeded';
}

/** The code of a 409; undefined: it is none, or has no code. */
export function codeOfConflict(exchange: Exchange): string | undefined {
  if (statusOf(exchange) !== 409) return undefined;
  const body = jsonOf(exchange);
  return textField(isObject(body) ? body['error'] : undefined, 'code');
}

/** Each exchange is to be answered with one of the statuses. What was limited is not looked at. */
export function judgeStatus(
  exchanges: readonly Exchange[],
  /** What they are, in the plural. */
  what: string,
  statuses: readonly number[],
  /** What has to come, in words. */
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

/** The status that a read shows: the resource's own, or `404`. */
export function shownStatus(exchange: Exchange | undefined): string {
  if (exchange === undefined) return 'not read';
  const status = textField(successOf(exchange), 'status');
  return status === undefined ? answerOf(exchange) : printable(status, 60);
}

/** For a wait that the run gave up. */
export function stillWaiting(what: string, status: string): Finding {
  return notTested(
    `${what} was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
  );
}

/** A failure that was seen only after a SPOT instance had been seen for the last time is of what the platform took back. */
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

/** A failure that is only what was read last, of a run that ended while it still waited, is none. */
export function unlessCutShort(evidence: Evidence, finding: Finding): Finding {
  if (finding.verdict !== 'fail' || evidence.end?.reason === 'completed') return finding;
  const last = evidence.exchanges.findLast(({ step }) => !step.startsWith('cleanup/'));
  const isLast = finding.problems.every(
    ({ shown }) => shown !== undefined && last?.step.startsWith(shown.step),
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
