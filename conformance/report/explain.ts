import type { Check } from '../checks/check.ts';
import type { Requirement } from '../contract/requirements.ts';

/** The text of `berth conformance explain ID`: the clause, its meaning, and how a run checks it. */
export function explain(requirement: Requirement, checks: readonly Check[]): string {
  const { id, level, tier, place, text, means, cause, excluded } = requirement;
  const own = checksOf(requirement, checks);
  const lines = [
    `${id}  ${level}, ${tier} tier`,
    '',
    ...(means === undefined ? [] : [means, '']),
    'The contract says',
    `  “${text}”`,
    `  ${place}`,
    '',
    'A failure is',
    level === 'MUST'
      ? '  a failed check: the target is NON-CONFORMANT'
      : '  a warning: it does not change the outcome',
    '',
    'How it is tested',
  ];
  if (excluded !== undefined) lines.push(`  not tested: ${excluded}`);
  for (const check of own)
    lines.push(
      `  ${check.id === id ? '' : `by ${check.id}, `}from --level ${check.level} on, by the scenarios ${check.scenarios.join(', ')}`,
    );
  if (cause !== undefined) lines.push('', 'Usual cause of a failure', `  ${cause}`);
  const only = own.map((check) => check.id).join(',');
  if (own.length > 0) lines.push('', 'To run only this', `  berth conformance <base_url> --only ${only}`);
  return `${lines.join('\n')}\n`;
}

/** The text of `berth conformance list`: one line per requirement, by tier, with the level that it needs. */
export function toList(requirements: readonly Requirement[], checks: readonly Check[]): string {
  const width = Math.max(...requirements.map(({ id }) => id.length), 2);
  const row = (id: string, level: string, run: string, what: string): string =>
    `${id.padEnd(width)}  ${level.padEnd(6)}  ${run.padEnd(9)}  ${what}`.trimEnd();
  const tiers = Map.groupBy(requirements, ({ tier }) => tier);
  const sections = [...tiers].map(([tier, rows]) => [
    `${tier.toUpperCase()} (${rows.length})`,
    row('ID', '', 'LEVEL', ''),
    ...rows.map((requirement) => {
      const { id, level, means, text, excluded } = requirement;
      const needed = checksOf(requirement, checks).map((check) => check.level);
      return row(id, level, excluded === undefined ? needed.join(', ') : 'excluded', means ?? text);
    }),
  ]);
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function checksOf({ checks = [] }: Requirement, all: readonly Check[]): Check[] {
  return all.filter(({ id }) => checks.includes(id));
}
