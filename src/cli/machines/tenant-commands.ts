import { ProviderError } from '../../client/orchestrator-client.ts';
import { columnsOf } from '../../operator-kit/columns.ts';
import { Fatal } from '../../ports/errors.ts';
import { systemClock } from '../../runtime/system.ts';
import { type ConfirmFlags, isConfirmed } from '../confirm.ts';
import type { Context } from '../context/contexts.ts';
import { isData, type ListFlags, printData, printDone, printPart, printRows } from '../print-records.ts';
import { ChangedRows, repeat, untilInterrupted } from '../watch.ts';
import { find } from './machine.ts';
import { type TenantClient, toRow, type Verb, withTenant } from './tenant.ts';

/** What the commands of `berth instances` do with the key of an account, by their verbs. */
export const tenantCommands: Readonly<Record<string, (context: Context, ...args: never[]) => Promise<void>>> =
  {
    ls: list,
    show,
    start: ordering('startInstance', 'starts; it is ONLINE when its SSH endpoint answers'),
    stop: ordering('stopInstance', 'stops; its disk is kept'),
    restart: ordering('restartInstance', 'restarts: its memory is lost, its disk stays'),
    rm: remove,
  };

interface Filters extends ListFlags {
  status?: string;
  region?: string;
  offer?: string;
  account?: string;
  find?: string;
}

async function list(context: Context, flags: Filters): Promise<void> {
  const { status, region, offer, account, find: text } = flags;
  if (account !== undefined || text !== undefined)
    throw new Fatal('--account and --find need the key of an operator.');
  const print = async (client: TenantClient, watched?: ChangedRows): Promise<void> => {
    const found = (await client.listInstances()).filter(
      (one) =>
        (status === undefined || one.status === status) &&
        (region === undefined || one.region === region) &&
        (offer === undefined || one.configuration_id === offer),
    );
    const rows = isData(flags) ? found : found.map(toRow);
    const columns = columnsOf(rows[0] ?? {});
    const now = systemClock.now();
    printRows(rows, flags, { columns, none: 'There is no such instance.', now, watched });
  };
  await withTenant(context, async (client) => {
    if (flags.watch !== true) return print(client);
    const watched = new ChangedRows();
    await untilInterrupted((end) => repeat(systemClock, end, () => print(client, watched)));
  });
}

async function show(context: Context, given: string, flags: ListFlags): Promise<void> {
  await withTenant(context, async (client) => {
    const { id, region } = await find(client, given);
    const instance = await client.getInstance(id, region);
    if (isData(flags)) printData(flags, instance);
    else printPart(instance);
  });
}

function ordering(verb: Verb, effect: string) {
  return (context: Context, given: string, flags: ListFlags & ConfirmFlags): Promise<void> =>
    withTenant(context, async (client) => {
      const { id, region, name, status } = await find(client, given);
      const plan = `${name ?? id} (${id}) is ${status}. It ${effect}.`;
      if (!(await isConfirmed(flags, () => printDone(flags, { id, status, done: false }, plan)))) return;
      const after = await client[verb](id, region).catch((cause: unknown) => {
        const isUnknown = cause instanceof ProviderError && ['not_found', 'invalid'].includes(cause.problem);
        if (verb !== 'restartInstance' || !isUnknown) throw cause;
        throw new Fatal(
          `${context.url} cannot restart ${id}: the contract has no restart. Stop and start it.`,
          {
            cause,
          },
        );
      });
      printDone(flags, after, `Ordered: ${name ?? id} ${effect}.`);
    });
}

async function remove(context: Context, given: string, flags: ListFlags & ConfirmFlags): Promise<void> {
  await withTenant(context, async (client) => {
    const { id, region, name, status } = await find(client, given);
    const plan = `${name ?? id} (${id}) is ${status}. Its machine and its disk are removed, and all data on it is lost.`;
    if (!(await isConfirmed(flags, () => printDone(flags, { id, status, done: false }, plan)))) return;
    const after = await client.deleteInstance(id, region);
    printDone(
      flags,
      after ?? { id, status: 'DESTROYED' },
      `Ordered: ${name ?? id} (${id}) is being removed.`,
    );
  });
}
