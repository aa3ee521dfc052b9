import { Command } from 'commander';
import { readBaseUrl } from '../../doctor/base-url.ts';
import { type Diagnosis, note, toLines } from '../../doctor/diagnosis.ts';
import { hasConfigFault } from '../../doctor/examine.ts';
import { sshEgress } from '../../doctor/machine.ts';
import { whyNotAffordable, whyNothingIsBought } from '../../plan/plan.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import type { CliParts, Finish } from '../parts.ts';
import { examineTarget, planOf, prepareRun } from '../preparation.ts';
import {
  hostAndPort,
  type RunFlags,
  stateFolderOf,
  withRunOptions,
  withStateFolder,
} from '../run-options.ts';
import { findSignIn, openTransport } from '../target-options.ts';

interface Flags extends RunFlags {
  stateDir?: string;
  json?: true;
  sshHost?: { host: string; port: number };
}

/** `berth conformance doctor <base_url>`: checks the whole set-up and does not stop at the first fault. */
export function doctorCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command('doctor')
    .description('check the set-up: DNS, TLS, clock, base_url, key, ledger, SSH; free, and creates nothing')
    .argument('<base_url>', 'the base URL of the API');
  return withStateFolder(withRunOptions(command))
    .option(
      '--ssh-host <host:port>',
      'the address of an SSH server, to test whether this machine can reach it',
      hostAndPort,
    )
    .option('--json', 'as JSON')
    .action(async (typed: string, flags: Flags) => {
      const diagnoses = await diagnose(typed, flags, parts);
      const { terminal } = parts;
      terminal.out(flags.json ? `${JSON.stringify(diagnoses, null, 2)}\n` : report(diagnoses));
      finish(hasConfigFault(diagnoses) ? EXIT.configuration : EXIT.conformant);
    });
}

async function diagnose(typed: string, flags: Flags, parts: CliParts): Promise<Diagnosis[]> {
  const local = diagnoseLocally(typed, flags, parts);
  const ssh = sshEgress(flags.sshHost);
  if (hasConfigFault(local)) return [...local, await ssh];
  using interruption = new Interruption(parts.signals, parts.terminal);
  const transport = openTransport(flags, parts);
  try {
    const preparation = prepareRun(typed, flags, [], parts);
    const stateFolder = stateFolderOf(flags, parts.env);
    const examineOptions = { transport, signal: interruption.signal, stateFolder, mayPost: true };
    const examined = await examineTarget(preparation, parts, examineOptions);
    const plan = planOf(preparation, examined);
    const why = whyNotAffordable(plan);
    const whyNothing = whyNothingIsBought(plan, flags.acceptUnknownCost === true);
    const cost: Diagnosis[] = [
      ...(why === undefined ? [] : [{ subject: 'Cost', state: 'config', text: why } as const]),
      ...(whyNothing === undefined ? [] : [note('Cost', whyNothing)]),
    ];
    return [...preparation.notes, ...examined.diagnoses, ...cost, await ssh];
  } finally {
    await transport.close();
  }
}

/** The checks that need no target, so that all local faults are reported at once. */
function diagnoseLocally(typed: string, flags: Flags, parts: CliParts): Diagnosis[] {
  const { diagnoses: ofUrl } = readBaseUrl(typed);
  return [...ofUrl, ...findSignIn(flags, parts).diagnoses];
}

function report(diagnoses: readonly Diagnosis[]): string {
  const faults = diagnoses.filter(({ state }) => state === 'config').length;
  const end =
    faults === 0
      ? 'The set-up is ready for a run.'
      : `${faults} ${faults === 1 ? 'problem prevents' : 'problems prevent'} a run. This says nothing about the target.`;
  return `${toLines(diagnoses)}\n${end}\n`;
}
