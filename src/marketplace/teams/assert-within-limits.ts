import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { TeamLimits } from '../model/options.ts';
import type { Reader } from '../model/store.ts';

const units: Readonly<Record<keyof TeamLimits, string>> = {
  deployments: 'active deployments',
  volumes: 'volumes',
  volumeGb: 'GB of volumes',
};

/**
 * Checks the limits of the team. The team's row must be locked, so that two requests cannot exceed a limit together.
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: quota_exceeded`
 */
export async function assertWithinLimits(
  { options }: Pick<Deps, 'options'>,
  read: Pick<Reader, 'deployments' | 'volumes'>,
  teamId: string,
  added: Partial<TeamLimits>,
): Promise<void> {
  const limits = options.spending.teamLimits;
  const names = (Object.keys(units) as (keyof TeamLimits)[]).filter(
    (name) => (added[name] ?? 0) > 0 && limits[name] !== null,
  );
  if (names.length === 0) return;
  const used = await countOf(read, teamId);
  for (const name of names) {
    const more = added[name] ?? 0;
    const limit = limits[name];
    if (limit === null || used[name] + more <= limit) continue;
    throw new ApiError(
      'VALIDATION_ERROR',
      `The team has ${used[name]} ${units[name]} of at most ${limit}; this would add ${more}. End or delete ` +
        'some first, or ask for a higher limit.',
      { details: { reason: 'quota_exceeded', quota: name, limit, used: used[name], requested: more } },
    );
  }
}

async function countOf(
  read: Pick<Reader, 'deployments' | 'volumes'>,
  teamId: string,
): Promise<Record<keyof TeamLimits, number>> {
  const deployments = await read.deployments.activeByPrice(teamId);
  // Volumes that are being deleted do not count.
  const volumes = (await read.volumes.ofTeam(teamId)).filter(({ status }) => status !== 'deleting');
  return {
    deployments: deployments.reduce((sum, { count }) => sum + count, 0),
    volumes: volumes.length,
    volumeGb: volumes.reduce((sum, { sizeGb, action }) => sum + (action?.toSizeGb ?? sizeGb), 0),
  };
}
