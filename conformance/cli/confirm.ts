import type { Plan } from '../plan/plan.ts';
import { plural } from '../report/words.ts';
import { formatUsd } from '../resources/budget.ts';
import type { Terminal } from './terminal.ts';

/**
 * Whether to go on. A person at a terminal is asked before money is spent; a script is not, for which `--max-cost`
 * holds.
 */
export async function confirm(
  { purchases, worst_case_usd, unpriced }: Plan,
  baseUrl: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  if (purchases.length === 0 || !terminal.isInteractive) return true;
  const more = unpriced.instances > 0 ? ', and something whose price is not known' : '';
  const made = (type: 'instance' | 'volume'): string =>
    plural(purchases.filter((purchase) => purchase.type === type).length, type);
  const what = [made('instance'), made('volume')].filter((each) => !each.startsWith('0 ')).join(' and ');
  const question = `This run makes ${what} at ${baseUrl}, and may cost up to ${formatUsd(worst_case_usd)}${more}. Go on? [y/N] `;
  return /^y(es)?$/i.test((await terminal.ask(question, signal)).trim());
}
