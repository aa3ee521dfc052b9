import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { Enforcement } from '../ledger/zero-balance.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { pauseDeployment } from './pause.ts';
import { endsAt } from './provider-of.ts';
import { transition } from './transition.ts';

/** What is done to deployments whose team has no balance left: as its owner could, but without a minimum runtime. */
export function createEnforcement(deps: ApplyDeps & Pick<Deps, 'wake'>): Enforcement {
  return {
    stop: async (id) => {
      const team = await ownerOf(deps, id);
      if (team !== null) await pauseDeployment(deps, { userId: team.ownerId }, id).catch(unlessSlow);
    },
    terminate: async (id) => {
      const ended = await deps.store.transact(async (tx) => {
        const record = await tx.deployments.byId(id);
        if (record === null || !isLive(record)) return null;
        return transition(deps, tx, record, {
          to: 'terminated',
          at: endsAt(deps.providers, record, deps.clock.now()),
        });
      });
      if (ended !== null) deps.wake(ended.providerId);
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
