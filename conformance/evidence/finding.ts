import { asksForList } from '../contract/paths.ts';
import { requestOf } from '../transcript/exchange.ts';
import type { Exchange, SshRecord } from '../transcript/records.ts';

/** A record that a finding refers to. */
export type Shown = Exchange | SshRecord;

/** One deviation from the requirement. */
export interface Problem {
  expected: string;
  actual: string;
  /** The record that shows it. */
  shown?: Shown;
}

/** The result of a check. */
export type Finding =
  | { verdict: 'pass'; reason: string; shown: readonly Shown[] }
  /** `of` is how many items were checked. */
  | { verdict: 'fail'; problems: readonly Problem[]; of: number }
  | { verdict: 'not_applicable'; reason: string; capability: string }
  | { verdict: 'not_tested'; reason: string };

/** Thrown if the transcript does not contain what a check needs. It carries the finding. */
export class MissingEvidence extends Error {
  override readonly name = 'MissingEvidence';
  readonly finding: Finding;

  constructor(finding: Finding) {
    super(finding.verdict);
    this.finding = finding;
  }
}

export function notTested(reason: string): Finding {
  return { verdict: 'not_tested', reason };
}

/** `reason` says which observation proves that the target does not have `capability`. */
export function notApplicable(capability: string, reason: string): Finding {
  return { verdict: 'not_applicable', capability, reason };
}

/**
 * Checks each item. `problemOf` returns its problem, or undefined. Without items the finding is `not_tested`: a check
 * without evidence proves nothing.
 */
export function judgeEach<T>(
  items: readonly T[],
  /** A plural noun for the items. */
  what: string,
  problemOf: (item: T) => Problem | Problem[] | undefined,
  shownOf: (item: T) => Shown | undefined,
): Finding {
  if (items.length === 0) return notTested(`the run saw no ${what}`);
  const problems = items.flatMap((item) => {
    const found = problemOf(item) ?? [];
    return (Array.isArray(found) ? found : [found]).map((problem) => ({
      ...withShown(shownOf(item)),
      ...problem,
    }));
  });
  if (problems.length > 0) return { verdict: 'fail', problems, of: items.length };
  const shown = [items[0], items.at(-1)].flatMap((item) => (item === undefined ? [] : (shownOf(item) ?? [])));
  return {
    verdict: 'pass',
    reason: `${items.length} ${what}, all as they must be`,
    shown: [...new Set(shown)],
  };
}

/** `judgeEach` for exchanges. */
export function judgeEachExchange(
  exchanges: readonly Exchange[],
  what: string,
  problemOf: (exchange: Exchange) => Problem | Problem[] | undefined,
): Finding {
  return judgeEach(exchanges, what, problemOf, (exchange) => exchange);
}

function withShown(shown: Shown | undefined): { shown?: Shown } {
  return shown === undefined ? {} : { shown };
}

/** Whether a list exceeded the suite's own size limit, which is not a fault of the target. */
export function isTooLong({ request, failure }: Exchange): boolean {
  return failure?.kind === 'too_large' && asksForList(request);
}

/** Throws `MissingEvidence` if a list exceeded the suite's size limit. */
export function refuseTooLong(exchanges: readonly Exchange[]): void {
  const found = exchanges.find(isTooLong);
  if (found === undefined) return;
  throw new MissingEvidence(
    notTested(`the answer to ${requestOf(found)} is longer than the suite reads: ${found.failure?.message}`),
  );
}
