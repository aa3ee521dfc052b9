import { statSync } from 'node:fs';
import { platformsOf } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { Reader } from '../../orchestrator/model/store.ts';
import { knownPlatforms, leftPlatforms } from '../../orchestrator/reconciliation/installation.ts';
import { broken, type Diagnosis, warning } from '../../ports/diagnosis.ts';
import { Fatal } from '../../ports/errors.ts';
import { orchestratorStores } from '../stores/orchestrator.ts';
import { withExisting } from '../stores/stores.ts';

/** Reports platforms that the database has and berth.yaml does not name, such as a removed one. */
export async function* diagnosePlatforms(config: Config): AsyncGenerator<Diagnosis> {
  const { database } = config;
  if (!isPostgres(database) && !statSync(sqlitePath(database), { throwIfNoEntry: false })?.size) return;
  const configured = new Set(platformsOf(config).keys());
  try {
    yield* await withExisting(orchestratorStores, database, ({ store }) =>
      unconfigured(store.read, configured, store.isShared),
    );
  } catch (error) {
    if (!(error instanceof Fatal)) throw error;
    yield warning(
      'platforms of the database',
      error.message,
      'Follow this message, and run the check again.',
    );
  }
}

async function unconfigured(
  read: Reader,
  configured: ReadonlySet<string>,
  isShared: boolean,
): Promise<Diagnosis[]> {
  const installation = await read.installation.get();
  const live = new Map<string, number>();
  for (const { platform, count } of [
    ...(await read.instances.countByPlatform()),
    ...(await read.volumes.countByPlatform()),
  ])
    if (!configured.has(platform)) live.set(platform, (live.get(platform) ?? 0) + count);
  const known = installation === null ? [] : knownPlatforms(installation);
  const away = known.filter((name) => !configured.has(name) && !live.has(name));
  return [
    ...[...live].map(([name, count]) =>
      broken(
        `platform ${name}`,
        `the database has ${count} instances and volumes there, but berth.yaml does not name the platform`,
        `Add it to platforms: as ${name}, or delete what is on it first. \`berth serve\` does not start.`,
      ),
    ),
    ...(await leftPlatforms(read, away)).map(({ platform, instances, volumes }) =>
      warning(
        `platform ${platform}`,
        `berth.yaml no longer names it: Berth does not check there for machines and volumes that ${instances + volumes} ended instances and volumes may have left`,
        isShared
          ? 'Do nothing if another server has it in its berth.yaml. Otherwise check with its own tools that no machine or volume of Berth is left there.'
          : 'Check with its own tools that no machine or volume of Berth is left there, or configure it again.',
      ),
    ),
  ];
}
