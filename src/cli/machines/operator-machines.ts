import { createInstance } from '../../orchestrator/operate/actions/create-instance.ts';
import type { OperationDeps } from '../../orchestrator/operate/operations.ts';
import { type InstanceDetail, instanceView } from '../../orchestrator/operate/views/instance.ts';
import { type InstancePage, instancesView } from '../../orchestrator/operate/views/instances.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Target } from '../context/target.ts';
import { inFlags, type Machine, type Machines } from './machine.ts';

/** Enough to see whether an argument is unique. */
const MOST = 100;

/** The instances of all accounts. */
export function operatorMachines(target: Target<OperationDeps>): Machines {
  return {
    search: async (text) =>
      ((await target.perform(instancesView, { q: text, limit: MOST })) as InstancePage).instances,
    get: async ({ id }) =>
      toMachine((await target.perform(instanceView, { instanceId: id })) as InstanceDetail),
    create: async (request, account) => {
      if (account === undefined)
        throw new Fatal('Give --account: an operator creates an instance for an account.');
      const created = target.perform(createInstance, { account, ...request }).catch((error: unknown) => {
        throw error instanceof Fatal ? new Fatal(inFlags(error.message), { cause: error }) : error;
      });
      return (await created) as { id: string; region: string };
    },
  };
}

function toMachine(detail: InstanceDetail): Machine {
  const [, user = '', host = '', port] = /^(.+)@(.+):(\d+)$/.exec(detail.endpoint ?? '') ?? [];
  return {
    id: detail.id,
    name: detail.name,
    status: detail.status,
    region: detail.region,
    endpoint: port === undefined ? null : { user, host, port: Number(port) },
    error: detail.error,
    progress: progressOf(detail),
    console: detail.events.findLast(({ console }) => console !== null)?.console ?? null,
  };
}

function progressOf({ work, phase, deadline_at: end, last_problem: problem }: InstanceDetail): string | null {
  if (work === null) return null;
  return [
    `step ${work}`,
    phase !== null && `the platform says ${phase}`,
    end !== null && `until ${end} at most`,
    problem !== null && `last problem: ${problem}`,
  ]
    .filter(Boolean)
    .join('; ');
}
