import { LeaseLost } from '../../work/lease.ts';
import type { Deps } from '../deps.ts';
import { endBilling } from '../ledger/segments.ts';
import { isActive } from '../model/deployment-record.ts';
import type { Transaction } from '../model/store.ts';
import { writeAttachment } from '../volumes/intents.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from '../volumes/snapshot.ts';
import { endsAt } from './terminate.ts';
import { transition } from './transition.ts';

/**
 * Ends the deployments and volumes at providers that the configuration calls retired. Nothing is sent to the provider, so
 * what it has is kept there. Each server that still has the former configuration may add rows until it restarts.
 */
export async function endRetired(deps: Deps, retired: readonly string[]): Promise<void> {
  const { read } = deps.store;
  for (const provider of retired) {
    for (const { id } of await read.deployments.toSync(provider))
      await guard(deps, provider, () => deps.store.transact((tx) => endDeployment(deps, tx, id)));
    for (const id of await read.volumes.toSync(provider))
      await guard(deps, provider, () =>
        transactOnVolume(deps.store, id, (tx, snapshot) => endVolume(deps, tx, snapshot)),
      );
  }
}

async function guard({ log }: Pick<Deps, 'log'>, provider: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (err) {
    if (err instanceof LeaseLost) throw err;
    log.error(
      { err, provider },
      'could not end a deployment or volume of a retired provider: it will be retried',
    );
  }
}

async function endDeployment(deps: Deps, tx: Transaction, id: string): Promise<void> {
  const record = await tx.deployments.byId(id);
  if (record === null) return;
  if (!isActive(record)) return tx.deployments.setCleanup(id, 'none');
  const at = endsAt(deps.providers, record, deps.clock.now());
  const end =
    record.status === 'deploying'
      ? { to: 'failed' as const, fields: { failureReason: 'provider_lost' as const } }
      : { to: 'terminated-provider' as const };
  await transition(deps, tx, record, { ...end, at, isLoss: true });
}

async function endVolume(
  { random, clock }: Deps,
  tx: Transaction,
  { record, attachments }: VolumeSnapshot,
): Promise<void> {
  const deletedAt = record.deletedAt ?? (await endBilling({ random }, tx, 'volume', record.id, clock.now()));
  const isShown = record.status === 'available' || record.status === 'attached';
  const ending = isShown ? await writeVolume(tx, record, { status: 'deleting', deletedAt }) : record;
  await writeVolume(tx, ending, { status: 'deleted', deletedAt, cleanup: 'done', action: null });
  await tx.losses.release(record.id);
  for (const { deployment } of attachments) await writeAttachment(tx, record, deployment, 'gone');
}
