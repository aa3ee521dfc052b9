import type { Command } from 'commander';
import { requestAdoption } from '../orchestrator/operate/actions/adopt.ts';
import {
  forceDestroyInstance,
  type Plan,
  releaseInstance,
  retryInstance,
} from '../orchestrator/operate/actions/instances.ts';
import { toPlanRow } from '../orchestrator/operate/views/actions.ts';
import { printLine } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type JsonFlag, printJson, toJsonTime, withJson } from './print-records.ts';

interface Flags extends JsonFlag {
  yes?: true;
  reason?: string;
}

/** What an operator does to one instance: each says first what it would do. */
export function addInstanceActions(instances: Command): void {
  const retry = onDatabase(instances.command('retry <id>'), async (deps, id: string, flags: Flags) =>
    tell(await retryInstance(deps, localActor(), { id, isDone: flags.yes === true }), flags),
  );
  withYes(retry).description(
    'try the open step of an instance again now, or read its machine again where none is open',
  );
  const release = onDatabase(instances.command('release <id>'), async (deps, id: string, flags: Flags) =>
    tell(await releaseInstance(deps, localActor(), { id, isDone: flags.yes === true }), flags),
  );
  withYes(release).description(
    'remove the machine of an instance that failed, which failed_instances.hold_minutes keeps for you',
  );
  const destroy = onDatabase(instances.command('destroy <id>'), async (deps, id: string, flags: Flags) => {
    const { yes, reason = null } = flags;
    tell(await forceDestroyInstance(deps, localActor(), { id, isDone: yes === true, reason }), flags);
  });
  const adopt = onDatabase(instances.command('adopt <ref>'), async (deps, ref: string, flags: Flags) => {
    const { isDone, ...adoption } = await requestAdoption(deps, localActor(), {
      ref,
      isDone: flags.yes === true,
    });
    if (flags.json) return printJson({ ...adoption, done: isDone });
    printLine(adoption.problem);
    printLine(isDone ? `Ordered: ${adoption.effect}.` : `A dry run; with --yes, ${adoption.effect}.`);
  });
  withYes(adopt).description(
    'give a machine that no instance owns its row again, from the note on the platform',
  );
  withYes(destroy)
    .option('--reason <text>', 'why, for the audit log')
    .description('delete an instance of any account; it is DESTROYED only when its machine is proved gone');
}

function withYes(command: Command): Command {
  return withJson(command.option('--yes', 'do it; without this flag, say what would be done'));
}

function tell(plan: Plan, { json }: JsonFlag): void {
  if (json) printJson(toPlanRow(plan));
  else tellPlan(plan);
}

function tellPlan(plan: Plan): void {
  const { instance, account, status, step, effect, isDone } = plan;
  printLine(`${instance} of account ${account} is ${status}.`);
  if (step !== null) {
    const problem = step.lastError === null ? '' : `: ${step.lastError}`;
    printLine(
      `Its step ${step.kind} was tried ${step.attempt} times, and is next at ${toJsonTime(step.notBefore)}${problem}.`,
    );
  }
  printLine(isDone ? `Ordered: ${effect}.` : `A dry run; with --yes, ${effect}.`);
}
