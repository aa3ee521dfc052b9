import { isDeepStrictEqual } from 'node:util';
import type { Check } from '../checks/check.ts';
import { suiteVersion } from '../contract/package.ts';
import type { Requirement, Requirements } from '../contract/requirements.ts';
import { featuresIn, notAskedIn } from '../report/features.ts';
import { toReport, toTiers } from '../report/model.ts';
import type { Report, ReportCheck } from '../report/report.ts';
import { isObject } from '../text/json.ts';
import { shortJson } from '../text/wording.ts';
import { includes, type TranscriptRecord } from '../transcript/records.ts';
import { judge } from '../verdict/judge.ts';
import { countVerdicts, exitCodeOf, outcomeOf } from '../verdict/outcome.ts';
import { digestOf } from './digest.ts';
import { CertificateError } from './sign.ts';

/** This suite cannot say whether the report is right: it was made by another one. The message says by which. */
export class NotJudged extends Error {
  override readonly name = 'NotJudged';
}

/**
 * Makes the report again from its transcript, and demands that the two are equal, redacted values by their digest.
 * @throws {CertificateError} if they differ
 * @throws {NotJudged} if the report is of other requirements, or they differ and it is of another suite
 */
export function compareWithTranscript(
  report: Report,
  records: readonly TranscriptRecord[],
  requirements: Requirements,
  checks: readonly Check[],
): void {
  refuseOtherRequirements(report, requirements);
  const { signature: _, ...signed } = report;
  const judged = judge(records, requirements.rows, checks);
  const rebuilt: unknown = JSON.parse(
    JSON.stringify(toReport(records, judged, requirements, report.judged_by)),
  );
  if (digestOf(signed) === digestOf(rebuilt)) return;
  const { path, a, b } = firstDifference(signed, rebuilt);
  const madeBy = report.judged_by ?? report.suite_version;
  if (madeBy !== suiteVersion)
    throw new NotJudged(
      `version ${madeBy} of the suite made it, and this is ${suiteVersion}, whose report differs at ${path}: verify it with ${madeBy}`,
    );
  throw new CertificateError(`by its transcript, ${path} is ${shortJson(b)}, and not ${shortJson(a)}`);
}

/**
 * Checks what a report says against its own rows, without its transcript. The rows themselves stay unproved.
 * @throws {CertificateError} if they contradict each other
 * @throws {NotJudged} if the report is of other requirements
 */
export function compareWithRows(report: Report, requirements: Requirements, checks: readonly Check[]): void {
  refuseOtherRequirements(report, requirements);
  const levels = new Map(checks.map(({ id, level }) => [id, level]));
  if (report.contract_version !== requirements.contract)
    throw new CertificateError(`its requirements are of contract ${requirements.contract}`);
  if (report.checks.length !== requirements.rows.length)
    throw new CertificateError(
      `it has ${report.checks.length} rows, and its requirements are ${requirements.rows.length}`,
    );
  for (const [index, requirement] of requirements.rows.entries()) {
    const row = report.checks[index];
    if (row === undefined || !isAbout(row, requirement))
      throw new CertificateError(`row ${index + 1} must be ${requirement.id} as its requirements have it`);
    const isWhole = (requirement.checks ?? []).every((id) =>
      includes(report.level, levels.get(id) ?? 'full'),
    );
    const isNotAsked = notAskedIn({ ...report, checks: [row] }).length > 0;
    if (row.verdict === (isNotAsked ? 'not_applicable' : 'not_asked'))
      throw new CertificateError(
        `${row.id} cannot be ${row.verdict} by its capability and the settings of the run`,
      );
    if (!mayBe(row, requirement, report.only !== undefined, isWhole))
      throw new CertificateError(`${row.id} cannot be ${row.verdict} in a run of level ${report.level}`);
  }
  const { only, end, leftovers } = report;
  const counts = countVerdicts(report.checks);
  const outcome = outcomeOf(only === undefined ? {} : { only }, end, counts);
  const exitCode = exitCodeOf(outcome, end, leftovers);
  const features = featuresIn(
    report.checks.map(({ verdict }, index) => ({ requirement: requirements.rows[index], verdict })),
  );
  for (const [name, said, follows] of [
    ['counts', report.counts, counts],
    ['tiers', report.tiers, toTiers(report.checks)],
    ['features', report.features, features],
    ['outcome', report.outcome, outcome],
    ['exit_code', report.exit_code, exitCode],
  ] as const)
    if (!isDeepStrictEqual(said, follows))
      throw new CertificateError(`by its rows, ${name} is ${shortJson(follows)}, and not ${shortJson(said)}`);
}

function refuseOtherRequirements(
  { requirements_digest, suite_version }: Report,
  { digest }: Requirements,
): void {
  if (requirements_digest !== digest)
    throw new NotJudged(
      `it was judged by other requirements (SHA-256 ${requirements_digest}) than this suite has (${digest}): verify it with version ${suite_version}`,
    );
}

const isAbout = (row: ReportCheck, { id, level, tier, place, text, means }: Requirement): boolean =>
  isDeepStrictEqual(
    [row.id, row.level, row.tier, row.place, row.text, row.means],
    [id, level, tier, place, text, means],
  );

/** Whether a run can give the row this verdict. `isWhole`: the level of the run includes all its checks. */
function mayBe(
  { verdict, level }: ReportCheck,
  { excluded }: Requirement,
  isSelection: boolean,
  isWhole: boolean,
): boolean {
  if (excluded !== undefined || verdict === 'excluded')
    return excluded !== undefined && verdict === 'excluded';
  if (verdict === 'not_selected') return isSelection || !isWhole;
  if (verdict === 'pass') return isWhole;
  return verdict !== (level === 'SHOULD' ? 'fail' : 'warn');
}

interface Difference {
  /** A JSON pointer. */
  path: string;
  a: unknown;
  b: unknown;
}

/** Where two values of different digests differ first. */
function firstDifference(a: unknown, b: unknown, path = ''): Difference {
  const [inA, inB] = [fieldsOf(a), fieldsOf(b)];
  if (inA === undefined || inB === undefined) return { path: path || '/', a, b };
  for (const name of new Set([...Object.keys(inB), ...Object.keys(inA)]))
    if (!(name in inA && name in inB) || digestOf(inA[name]) !== digestOf(inB[name]))
      return firstDifference(inA[name], inB[name], `${path}/${name}`);
  return { path: path || '/', a, b };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : isObject(value) ? value : undefined;
