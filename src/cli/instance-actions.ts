import type { Command } from 'commander';
import { counted } from '../contract/counted.ts';
import type { Reader } from '../orchestrator/model/store.ts';
import {
  forceDestroyInstance,
  type Order,
  type Plan,
  releaseInstance,
  retryInstance,
} from '../orchestrator/operate/actions/instances.ts';
import { toPlanRow } from '../orchestrator/operate/views/actions.ts';
import { printLine } from '../runtime/print.ts';
import { instanceNamed } from './instance-named.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { cutName, isData, type OutputFlag, printData, toJsonTime, withOutput } from './print-records.ts';

interface Flags extends OutputFlag {
  yes?: true;
  reason?: string;
}

/** Adds the operator's actions on one instance. Each first shows its plan. */
export function addInstanceActions(instances: Command): void {
  const retry = onDatabase(instances.command('retry <instance>'), async (deps, given: string, flags: Flags) =>
    tell(deps, await retryInstance(deps, localActor(), await toOrder(deps.store.read, given, flags)), flags),
  );
  withYes(retry).description(
    'try the open step of an instance again now, or read its machine again where none is open',
  );
  const release = onDatabase(
    instances.command('release <instance>'),
    async (deps, given: string, flags: Flags) =>
      tell(
        deps,
        await releaseInstance(deps, localActor(), await toOrder(deps.store.read, given, flags)),
        flags,
      ),
  );
  withYes(release).description(
    'remove the machine of an instance that failed now, with its disks; without this it stays until its DELETE or failed_instances.hold_minutes',
  );
  const destroy = onDatabase(
    instances.command('rm <instance>'),
    async (deps, given: string, flags: Flags) => {
      const { reason = null } = flags;
      const order = { ...(await toOrder(deps.store.read, given, flags)), reason };
      await tell(deps, await forceDestroyInstance(deps, localActor(), order), flags);
    },
  );
  withYes(destroy)
    .option('--reason <text>', 'why, for the audit log')
    .description(
      'delete an instance of any account; it becomes DESTROYED only when its machine is confirmed gone',
    );
}

/** Builds an order for the instance of this id or name. */
async function toOrder(read: Reader, given: string, { yes }: Flags): Promise<Order> {
  return { id: await instanceNamed(read, given), isDone: yes === true };
}

export function withYes(command: Command): Command {
  return withOutput(command.option('--yes', 'do it; without this flag, say what would be done'));
}

async function tell(
  { store: { read } }: { store: { read: Pick<Reader, 'credentials'> } },
  plan: Plan,
  flags: OutputFlag,
): Promise<void> {
  if (isData(flags)) printData(flags, toPlanRow(plan));
  else tellPlan(plan, await read.credentials.accountById(plan.account));
}

/** `owner`: null if the account was deleted. */
function tellPlan(plan: Plan, owner: { name: string } | null): void {
  const { instance, account, status, step, effect, isDone } = plan;
  const named = owner === null ? account : `${cutName(owner.name)} (${account})`;
  printLine(`${instance} of account ${named} is ${status}.`);
  if (step !== null) {
    const problem = step.lastError === null ? '' : `: ${step.lastError}`;
    const tried = step.attempt === 0 ? 'is' : `was tried ${counted(step.attempt, 'time')}, and is`;
    printLine(`Its step ${step.kind} ${tried} due at ${toJsonTime(step.notBefore)}${problem}.`);
  }
  printLine(isDone ? `Ordered: ${effect}.` : `A dry run; with --yes, ${effect}.`);
}
