import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { assertVolumesDue } from '../ledger/watch-volumes.ts';
import type { Enforcement } from '../ledger/zero-balance.ts';
import type { Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { deleteVolume } from '../volumes/delete.ts';
import type { VolumeDeps } from '../volumes/deps.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { pauseDeployment } from './pause.ts';
import { endsAt } from './provider-of.ts';
import { transition } from './transition.ts';

/** What is done to what a team has that has no balance left: as its owner could, but without a minimum runtime. */
export function createEnforcement(all: Omit<ApplyDeps & VolumeDeps, 'store'>): Enforcement {
  return {
    stop: async (id, store) => {
      const deps = { ...all, store };
      const team = await ownerOf(deps, id);
      if (team !== null) await pauseDeployment(deps, { userId: team.ownerId }, id).catch(unlessSlow);
    },
    terminate: async (id, store) => {
      const deps = { ...all, store };
      const ended = await store.transact(async (tx) => {
        const record = await tx.deployments.byId(id);
        if (record === null || !isLive(record)) return null;
        return transition(deps, tx, record, {
          to: 'terminated',
          at: endsAt(deps.providers, record, deps.clock.now()),
        });
      });
      if (ended !== null) deps.wake(ended.providerId);
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

async function ownerOf({ store }: Pick<Deps, 'store'>, id: string): Promise<{ ownerId: string } | null> {
  const record = await store.read.deployments.byId(id);
  return record === null ? null : store.read.teams.byId(record.teamId);
}

/** A slow provider has taken the stop: a poll will show it. */
function unlessSlow(error: unknown): void {
  if (!(error instanceof ApiError) || error.code !== 'PROVIDER_SLOW') throw error;
}
