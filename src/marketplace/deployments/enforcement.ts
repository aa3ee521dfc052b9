import type { Deps } from '../deps.ts';
import { assertVolumesDue } from '../ledger/watch-volumes.ts';
import { BalanceIsBack, dueStep, type Enforcement } from '../ledger/zero-balance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Store, Transaction } from '../model/store.ts';
import { type DeleteDeps, deleteVolume } from '../volumes/delete.ts';
import { orderEnd, orderStop } from './orders.ts';
import type { TransitionDeps } from './transition.ts';

/** Ends the deployments and volumes of a team without balance, as its owner could, but without a minimum runtime. */
export function createEnforcement(all: Omit<TransitionDeps & DeleteDeps, 'store'>): Enforcement {
  const { clock } = all;
  return {
    stop: (id, store) =>
      onDue(all, store, id, async (tx, record, ownerId) => {
        // If the team pays meanwhile, the intent expires. The next round writes it again.
        if (record.status === 'running') await orderStop(all, tx, record, ownerId);
      }),
    terminate: (id, store) =>
      onDue(all, store, id, async (tx, record) => void (await orderEnd(all, tx, record))),
    deleteVolume: async ({ teamId, volumeId }, store) => {
      const team = await store.read.teams.byId(teamId);
      if (team === null) return;
      const isStillDue = (tx: Transaction) => assertVolumesDue(tx, teamId, clock.now());
      await deleteVolume({ ...all, store }, { userId: team.ownerId }, volumeId, isStillDue);
    },
  };
}

/** @throws {BalanceIsBack} if the team has paid since the decision, or its grace has started anew */
async function onDue(
  { clock, options }: Pick<Deps, 'clock' | 'options'>,
  store: Store,
  id: string,
  write: (tx: Transaction, record: DeploymentRecord, ownerId: string) => Promise<void>,
): Promise<void> {
  const known = await store.read.deployments.byId(id);
  const owner = known === null ? null : await store.read.teams.byId(known.teamId);
  await store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record === null || (record.status !== 'running' && record.status !== 'stopped')) return;
    await write(tx, record, owner?.ownerId ?? '');
    // The team is locked last, as in every transaction. A throw here rolls everything back.
    const exhaustedAt = (await tx.teams.byId(record.teamId))?.watch.exhaustedAt ?? null;
    const { zeroBalance } = options.billing;
    if (exhaustedAt !== null && dueStep(record, exhaustedAt, zeroBalance, clock.now()) !== null) return;
    throw new BalanceIsBack(`the balance of ${record.teamId} is above zero again, or was in the meantime`);
  });
}
