import type { Check } from '../checks/check.ts';
import type { Requirement } from '../contract/requirements.ts';
import { Evidence } from '../evidence/evidence.ts';
import { type Finding, MissingEvidence } from '../evidence/finding.ts';
import { includes, type RunRecord, type TranscriptRecord } from '../transcript/records.ts';
import { SuiteFault } from '../transcript/transcript.ts';
import { notAsked } from './not-asked.ts';

/** The check was not part of the run. */
export interface NotSelected {
  verdict: 'not_selected';
  reason: string;
}

/** The requirement cannot be observed from outside. */
export interface Excluded {
  verdict: 'excluded';
  reason: string;
}

export type Ruling = Finding | NotSelected | Excluded;

/** A requirement and its verdict. `warn` is the failure of a SHOULD. */
export interface Judged {
  requirement: Requirement;
  ruling: Ruling;
  verdict: Verdict;
}

/** `not_asked`: it does not apply, because the run was not asked to test it. */
export type Verdict = Ruling['verdict'] | 'warn' | 'not_asked';

/** Judges every requirement by a transcript, in the order of requirements.yaml. Throws `SuiteFault`. */
export function judge(
  records: readonly TranscriptRecord[],
  requirements: readonly Requirement[],
  checks: readonly Check[],
): Judged[] {
  const evidence = new Evidence(records);
  const rulings = new Map(checks.map((check) => [check.id, ruleOn(check, evidence)]));
  return requirements.map((requirement) => {
    const ruling = rulingOn(requirement, rulings);
    return { requirement, ruling, verdict: verdictOf(requirement, ruling, evidence.run) };
  });
}

function verdictOf({ level }: Requirement, ruling: Ruling, { settings }: RunRecord): Verdict {
  if (ruling.verdict === 'fail' && level === 'SHOULD') return 'warn';
  const isNotAsked =
    ruling.verdict === 'not_applicable' && notAsked(ruling.capability, settings) !== undefined;
  return isNotAsked ? 'not_asked' : ruling.verdict;
}

function ruleOn(check: Check, evidence: Evidence): Ruling {
  const { level, only } = evidence.run;
  if (!includes(level, check.level))
    return { verdict: 'not_selected', reason: `needs --level ${check.level}; this run was ${level}` };
  if (only !== undefined && !only.includes(check.id))
    return { verdict: 'not_selected', reason: 'not selected (--only, --rerun-failed)' };
  try {
    return check.judge(evidence);
  } catch (error) {
    if (error instanceof MissingEvidence) return error.finding;
    throw new SuiteFault(
      `the check ${check.id} threw ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
      },
    );
  }
}

const GRAVEST_FIRST = ['fail', 'not_tested', 'not_applicable', 'not_selected', 'pass'] as const;

/** The worst ruling of the checks that prove a requirement. */
function rulingOn({ id, checks, excluded }: Requirement, rulings: ReadonlyMap<string, Ruling>): Ruling {
  if (excluded !== undefined) return { verdict: 'excluded', reason: excluded };
  const found = (checks ?? []).map((check) => {
    const ruling = rulings.get(check);
    if (ruling === undefined) throw new SuiteFault(`${id} is proved by ${check}, which is not a check`);
    return ruling;
  });
  for (const verdict of GRAVEST_FIRST) {
    const gravest = found.find((ruling) => ruling.verdict === verdict);
    if (gravest !== undefined) return gravest;
  }
  throw new SuiteFault(`${id} has no check`);
}
