import { Command } from 'commander';
import { hasConfigFault } from '../../doctor/examine.ts';
import { whyNotAffordable, whyNothingIsBought } from '../../plan/plan.ts';
import { toText } from '../../plan/text.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import type { CliParts, Finish } from '../parts.ts';
import { examineTarget, planOf, prepareRun, printNotable } from '../preparation.ts';
import { CommandError, NAME } from '../program.ts';
import { type RunFlags, withRunOptions } from '../run-options.ts';
import { openTransport } from '../target-options.ts';

/** `berth conformance plan <base_url>`: what a run would do and could cost. It sends GETs only. */
export function planCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command('plan')
    .description('show what a run would do, create and cost at most; sends only GET requests')
    .argument('<base_url>', 'the base URL of the API');
  return withRunOptions(command)
    .option('--json', 'as JSON')
    .action(async (typed: string, flags: RunFlags & { json?: true }) => {
      finish(await executePlan(typed, flags, parts));
    });
}

async function executePlan(
  typed: string,
  flags: RunFlags & { json?: true },
  parts: CliParts,
): Promise<number> {
  const { terminal } = parts;
  const preparation = prepareRun(typed, flags, [], parts);
  using interruption = new Interruption(parts.signals, terminal);
  const transport = openTransport(flags, parts);
  try {
    const examineOptions = { transport, signal: interruption.signal, mayPost: false };
    const examined = await examineTarget(preparation, parts, examineOptions);
    const found = [...preparation.notes, ...examined.diagnoses];
    printNotable(found, terminal);
    if (hasConfigFault(found)) throw new CommandError('no plan is possible: see CONFIG above');
    const plan = planOf(preparation, examined);
    terminal.out(flags.json ? `${JSON.stringify(plan, null, 2)}\n` : toText(plan));
    const whyNothing = whyNothingIsBought(plan, flags.acceptUnknownCost === true);
    if (whyNothing !== undefined) terminal.err(`NOTE    ${whyNothing}.\n`);
    const why = whyNotAffordable(plan);
    if (why === undefined) return EXIT.conformant;
    terminal.err(`${NAME}: ${why}.\n`);
    return EXIT.configuration;
  } finally {
    await transport.close();
  }
}
