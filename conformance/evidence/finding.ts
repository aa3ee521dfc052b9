import { asksForList } from '../contract/paths.ts';
import { requestOf } from '../transcript/exchange.ts';
import type { Exchange, SshRecord } from '../transcript/records.ts';

/** A record that shows something. */
export type Shown = Exchange | SshRecord;

/** One thing that is not as it must be. */
export interface Problem {
  expected: string;
  actual: string;
  /** The record that shows it. */
  shown?: Shown;
}

/** What a check found. */
export type Finding =
  | { verdict: 'pass' /** In words, with numbers. */; reason: string; shown: readonly Shown[] }
  | { verdict: 'fail'; problems: readonly Problem[] /** How many were looked at. */; of: number }
  | { verdict: 'not_applicable'; reason: string; capability: string }
  | { verdict: 'not_tested'; reason: string };

/** Thrown by what a check asks of the evidence, where it is not there. */
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

/** `reason` says what was seen that shows that `capability` is absent. */
export function notApplicable(capability: string, reason: string): Finding {
  return { verdict: 'not_applicable', capability, reason };
}

/**
 * Looks at each item. `problemOf` answers with what is wrong with it, or with nothing. No items is `not tested`, since a
 * check that saw nothing proves nothing.
 */
export function judgeEach<T>(
  items: readonly T[],
  /** What the items are, in the plural. */
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

/** `judgeEach` of exchanges. */
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

/** Whether a list was longer than what the suite reads, which is its own limit and no fault of the target. */
export function isTooLong({ request, failure }: Exchange): boolean {
  return failure?.kind === 'too_large' && asksForList(request);
}

/** Where a list was too long, throws `MissingEvidence`, which says so. */
export function refuseTooLong(exchanges: readonly Exchange[]): void {
  const found = exchanges.find(isTooLong);
  if (found === undefined) return;
  throw new MissingEvidence(
    notTested(`the answer to ${requestOf(found)} is longer than the suite reads: ${found.failure?.message}`),
  );
}
