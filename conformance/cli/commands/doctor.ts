import { Command } from 'commander';
import { readBaseUrl } from '../../doctor/base-url.ts';
import { toLines } from '../../doctor/diagnosis.ts';
import { hasConfigFault } from '../../doctor/examine.ts';
import { sshEgress } from '../../doctor/machine.ts';
import { toPlanText } from '../../doctor/plan-text.ts';
import { reach } from '../../doctor/reach.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import type { CliParts, Finish } from '../parts.ts';
import { type Diagnosed, diagnose, prepareRun } from '../preparation.ts';
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

/**
 * `berth conformance doctor <base_url>`: checks the whole set-up, without stopping at the first fault, and says what a run
 * would do and could cost.
 */
export function doctorCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command('doctor')
    .description(
      'check the set-up, and show what a run would do, create and cost at most; free, and creates nothing',
    )
    .argument('<base_url>', 'the base URL of the API');
  return withStateFolder(withRunOptions(command))
    .option(
      '--ssh-host <host:port>',
      'the address of an SSH server, to test whether this machine can reach it',
      hostAndPort,
    )
    .option('--json', 'as JSON')
    .action(async (typed: string, flags: Flags) => {
      const diagnosed = await diagnoseAll(typed, flags, parts);
      parts.terminal.out(flags.json ? `${JSON.stringify(diagnosed, null, 2)}\n` : report(diagnosed));
      finish(hasConfigFault(diagnosed.diagnoses) ? EXIT.configuration : EXIT.conformant);
    });
}

/** All faults at once: without a usable key the address is tried all the same. */
async function diagnoseAll(typed: string, flags: Flags, parts: CliParts): Promise<Diagnosed> {
  const { baseUrl, diagnoses: ofUrl } = readBaseUrl(typed);
  const { diagnoses: ofSignIn } = findSignIn(flags, parts);
  const ssh = sshEgress(flags.sshHost);
  if (baseUrl === undefined) return { diagnoses: [...ofUrl, ...ofSignIn, await ssh] };
  using interruption = new Interruption(parts.signals, parts.terminal);
  const transport = openTransport(flags, parts);
  const { signal } = interruption;
  try {
    if (hasConfigFault(ofSignIn)) {
      const asked = { transport, signal, timeoutMs: parts.probeTimeoutMs };
      const { diagnoses: tried } = await reach(asked, baseUrl);
      return { diagnoses: [...ofUrl, ...tried, ...ofSignIn, await ssh] };
    }
    const diagnosed = await diagnose(prepareRun(typed, flags, [], parts), parts, {
      transport,
      signal,
      stateFolder: stateFolderOf(flags, parts.env),
    });
    return { ...diagnosed, diagnoses: [...diagnosed.diagnoses, await ssh] };
  } finally {
    await transport.close();
  }
}

function report({ diagnoses, plan }: Diagnosed): string {
  const faults = diagnoses.filter(({ state }) => state === 'config').length;
  const end =
    faults === 0
      ? 'The set-up is ready for a run.'
      : `${faults} ${faults === 1 ? 'problem prevents' : 'problems prevent'} a run. This says nothing about the target.`;
  return `${toLines(diagnoses)}\n${plan === undefined ? '' : `${toPlanText(plan)}\n`}${end}\n`;
}
