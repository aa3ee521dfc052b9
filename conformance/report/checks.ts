import type { Evidence } from '../evidence/evidence.ts';
import type { Finding, Problem, Shown } from '../evidence/finding.ts';
import type { Judged } from '../verdict/judge.ts';
import { cut } from './excerpt.ts';
import { actualWithStatus } from './instance-status.ts';
import type { ReportCheck, ReportProblem } from './report.ts';
import { round, type ShownRecords } from './shown.ts';
import { tracesOf } from './trace.ts';
import { atRunTime } from './words.ts';

const MAX_PROBLEMS = 5;
const MAX_PROOF = 2;
const MAX_TEXT_CHARACTERS = 600;
const MAX_REASON_CHARACTERS = 500;

/** A judged requirement in the form of the report. */
export function toReportCheck(
  { requirement, ruling, verdict }: Judged,
  evidence: Evidence,
  shown: ShownRecords,
  /** The cause that was recognised in the answers; default: the usual one of the requirement. */
  cause = requirement.cause,
): ReportCheck {
  const { id, level, tier, place, text, means } = requirement;
  const basis = { id, level, tier, verdict };
  const clause = { place, text, ...(means !== undefined && { means }) };
  if (ruling.verdict === 'fail') {
    const { reason, ...found } = failureOf(ruling, evidence, shown);
    return { ...basis, reason, ...clause, ...found, ...(cause !== undefined && { cause }) };
  }
  const reason = cut(ruling.reason, MAX_REASON_CHARACTERS);
  if (ruling.verdict === 'not_applicable')
    return { ...basis, reason, ...clause, capability: ruling.capability };
  if (ruling.verdict !== 'pass') return { ...basis, reason, ...clause };
  return {
    ...basis,
    reason,
    ...clause,
    proof: ruling.shown.slice(0, MAX_PROOF).map((record) => shown.refer(record)),
  };
}

type Failure = Extract<Finding, { verdict: 'fail' }>;

function failureOf({ problems: found, of }: Failure, { instances }: Evidence, shown: ShownRecords) {
  const problems = found.map((one) => ({ ...one, actual: actualWithStatus(one, instances) }));
  const first = problems.slice(0, MAX_PROBLEMS).map((problem) => toReportProblem(problem, shown));
  const texts = first.flatMap(({ expected, actual }) => [expected, actual]);
  const traces = tracesOf(problems, instances, texts);
  const seen = { wrong: Math.min(problems.length, Math.max(of, 1)), of: Math.max(of, 1) };
  return {
    reason: reasonOf(problems, seen),
    problems: first,
    ...(problems.length > first.length && { more_problems: problems.length - first.length }),
    seen,
    ...(traces.length !== 0 && { traces }),
  };
}

function reasonOf(problems: readonly Problem[], seen: { wrong: number; of: number }): string {
  const [first] = problems;
  const what =
    first === undefined ? 'it is not as it must be' : `expected ${first.expected}; got ${first.actual}`;
  const at = startOf(first?.shown);
  const often =
    seen.of === 1 ? '' : `${seen.wrong} of ${seen.of}${at === undefined ? '' : `, first at ${at}`}: `;
  return cut(`${often}${what}`, MAX_REASON_CHARACTERS);
}

function startOf(shown: Shown | undefined): string | undefined {
  return shown === undefined ? undefined : atRunTime(shown.sentAt);
}

function toReportProblem({ expected, actual, shown: record }: Problem, shown: ShownRecords): ReportProblem {
  return {
    expected: cut(expected, MAX_TEXT_CHARACTERS),
    actual: cut(actual, MAX_TEXT_CHARACTERS),
    ...(record !== undefined && {
      at_ms: round(record.sentAt),
      at: shown.wallOf(record),
      shown: shown.refer(record),
    }),
  };
}
