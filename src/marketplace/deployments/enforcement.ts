import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertVolumesDue } from '../ledger/watch-volumes.ts';
import { BalanceIsBack, dueStep, type Enforcement } from '../ledger/zero-balance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { TeamRecord } from '../model/people.ts';
import type { Transaction } from '../model/store.ts';
import { deleteVolume } from '../volumes/delete.ts';
import type { VolumeDeps } from '../volumes/refusal.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { pauseDeployment } from './pause.ts';
import { endsAt } from './refusal.ts';
import { transition } from './transition.ts';

/** Ends the deployments and volumes of a team without balance: as its owner could, but without a minimum runtime. */
export function createEnforcement(all: Omit<ApplyDeps & VolumeDeps, 'store'>): Enforcement {
  return {
    stop: async (id, store) => {
      const deps = { ...all, store };
      const record = await store.read.deployments.byId(id);
      const team = record === null ? null : await store.read.teams.byId(record.teamId);
      if (record === null || team === null) return;
      assertStillDue(deps, record, team);
      await pauseDeployment(deps, { userId: team.ownerId }, id).catch(ignoreSlow);
    },
    terminate: async (id, store) => {
      const deps = { ...all, store };
      const ended = await store.transact(async (tx) => {
        const record = await tx.deployments.byId(id);
        if (record === null || !isLive(record)) return null;
        const at = endsAt(deps.providers, record, deps.clock.now());
        const terminated = await transition(deps, tx, record, { to: 'terminated', at });
        // The team is locked last, as in every transaction; a throw here rolls everything back.
        assertStillDue(deps, record, await tx.teams.byId(record.teamId));
        return terminated;
      });
      if (ended !== null) deps.wake(ended.providerId, id);
    },
    deleteVolume: async ({ teamId, volumeId }, store) => {
      const deps = { ...all, store };
      const team = await store.read.teams.byId(teamId);
      if (team === null) return;
      const isStillDue = (tx: Transaction) => assertVolumesDue(tx, teamId, deps.clock.now());
      await deleteVolume(deps, { userId: team.ownerId }, volumeId, isStillDue);
    },
  };
}

function isLive({ status }: DeploymentRecord): boolean {
  return status === 'running' || status === 'stopped';
}

/** @throws {BalanceIsBack} where the team has paid since it was decided, or its grace has begun anew */
function assertStillDue(
  { clock, options }: Pick<Deps, 'clock' | 'options'>,
  record: DeploymentRecord,
  team: TeamRecord | null,
): void {
  const exhaustedAt = team?.watch.exhaustedAt ?? null;
  const { zeroBalance } = options.billing;
  if (exhaustedAt !== null && dueStep(record, exhaustedAt, zeroBalance, clock.now()) !== null) return;
  throw new BalanceIsBack(`the balance of ${record.teamId} is above zero again, or was since`);
}

/** A slow provider has taken the stop: a poll will show it. */
function ignoreSlow(error: unknown): void {
  if (!(error instanceof ApiError) || error.code !== 'PROVIDER_SLOW') throw error;
}
