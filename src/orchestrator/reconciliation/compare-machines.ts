import { inSlices } from '../../ports/in-slices.ts';
import type { ObservedMachine, OwnerRef, Power } from '../model/platform-driver.ts';
import { putInstanceWork } from '../model/rows.ts';
import { isUnseen, judgeHosts } from '../platform/asked-hosts.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { changedBefore, type ExpectedMachine, type ExpectedMachines } from '../platform/expected-machines.ts';
import { MachineAlarms } from '../platform/machine-alarms.ts';
import type { Listed } from '../platform/shared-listing.ts';
import { isNewlyVisible, markMachinesVisible, recordHosts } from '../platform/visibility.ts';

/**
 * Compares an accepted listing with the rows. A difference changes no state: it puts `observe` work for the instance. A
 * row that changed after the listing began is compared with the next listing.
 */
export async function compareMachines(
  context: ReconcileContext,
  expected: ExpectedMachines,
  { items, begunAt, hosts: asked }: Listed<ObservedMachine>,
): Promise<void> {
  const hosts = await judgeHosts(context, asked);
  const shown: string[] = [];
  const moved: [id: string, host: string][] = [];
  const alarms = new MachineAlarms(context);
  for await (const slice of inSlices(expected.entries()))
    for (const [ref, expectation] of slice) {
      const machine = items.get(ref);
      alarms.see(expectation, machine);
      if (machine === undefined && isUnseen(hosts, expectation)) continue;
      if (machine !== undefined && isNewlyVisible(expectation, begunAt, context)) shown.push(expectation.id);
      const host = machine?.host;
      if (host !== undefined && host !== expectation.host) moved.push([expectation.id, host]);
      if (changedBefore(expectation.since, begunAt, context) && differs(expectation, machine))
        await observe(context, expected, ref, expectation);
    }
  alarms.close();
  await markMachinesVisible(context, shown);
  await recordHosts(context, moved);
}

async function observe(
  { store, clock }: ReconcileContext,
  expected: ExpectedMachines,
  ref: OwnerRef,
  { id, version }: ExpectedMachine,
): Promise<void> {
  const isDestroyed = await store.transact(async (tx) => {
    const record = await tx.instances.byId(id);
    if (record === null || record.status === 'DESTROYED') return true;
    if (record.version === version && (await tx.work.of(id)) === null)
      await putInstanceWork(tx, id, 'observe', clock.now());
    return false;
  });
  // The row is forgotten after the commit: a SQLite transaction also sees uncommitted writes of the transactions before
  // it, and is rolled back with them.
  if (isDestroyed) expected.forget(ref);
}

/** What the machine of a STOPPED instance is not. One that runs without an endpoint is `starting` for as long as it has none. */
const NOT_STOPPED: ReadonlySet<Power> = new Set(['running', 'starting', 'destroying']);

/** Whether an `observe` is needed. Instances in a transitional state have work that reads the machine itself. */
function differs({ status, endpoint }: ExpectedMachine, machine: ObservedMachine | undefined): boolean {
  if (machine?.isLastKnown === true) return false;
  if (status === 'STOPPED') return machine === undefined || NOT_STOPPED.has(machine.power);
  if (status !== 'ONLINE') return false;
  if (machine === undefined || machine.power !== 'running') return true;
  return (
    machine.endpoint !== undefined &&
    (machine.endpoint.publicIp !== endpoint?.publicIp || machine.endpoint.sshPort !== endpoint.sshPort)
  );
}
