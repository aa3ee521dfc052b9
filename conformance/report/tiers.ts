import type { Judged } from '../verdict/judge.ts';
import { type Counts, countVerdicts } from '../verdict/outcome.ts';
import { type ReportTier, TIERS, type TierState } from './report.ts';

/** What was found of each tier of the contract. */
export function toTiers(judged: readonly Judged[]): ReportTier[] {
  return TIERS.map((tier) => {
    const counts = countVerdicts(judged.filter(({ requirement }) => requirement.tier === tier));
    return { tier, state: stateOf(counts), counts };
  });
}

function stateOf({ fail, not_tested, pass, warn, not_applicable }: Counts): TierState {
  if (fail > 0) return 'non-conformant';
  if (not_tested > 0) return 'incomplete';
  if (pass + warn > 0) return 'conformant';
  return not_applicable > 0 ? 'absent' : 'not looked at';
}
