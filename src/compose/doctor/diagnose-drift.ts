import { statSync } from 'node:fs';
import type { Config } from '../../config/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { DoctorFinding } from '../../orchestrator/operate/doctor.ts';
import { findDrift } from '../../orchestrator/operate/views/drift.ts';
import { observe } from '../../orchestrator/platform/call-platform.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConfiguredDriver } from '../drivers/driver-settings.ts';
import { orchestratorStores } from '../stores/orchestrator.ts';
import { withExisting } from '../stores/stores.ts';

const HOUR_MS = 60 * 60_000;

/** Resources that a running server has already opened. */
export interface Running {
  store: Pick<Store, 'read'>;
  drivers: ReadonlyMap<string, PlatformDriver>;
}

/** Compares the rows of a platform with its machines. Skipped if no server has ever run on the database. */
export async function* diagnoseDrift(
  config: Config,
  one: ConfiguredDriver,
  {
    clock,
    platforms,
    running,
    withinMs,
  }: { clock: Clock; platforms: readonly string[]; running: Running | undefined; withinMs: number },
): AsyncGenerator<DoctorFinding> {
  const { platform } = one;
  const otherPlatforms = new Set(platforms.filter((name) => name !== platform));
  const compare = async ({ read }: Pick<Store, 'read'>, driver: PlatformDriver): Promise<DoctorFinding[]> => {
    const waiting = { clock, options: { callTimeoutMs: withinMs } };
    const askedAt = clock.now();
    const listing = await observe(waiting, () => driver.list(), 'list');
    const asked = { platform, otherPlatforms, listing, askedAt };
    const keepDisksMs = config.losses.keep_disks_hours * HOUR_MS;
    const found = await findDrift(read, { ...asked, keepDisksMs, driver });
    return found.map((finding) => ({ platform, ...finding }));
  };
  const open = running?.drivers.get(platform);
  if (running !== undefined && open !== undefined) return yield* await compare(running.store, open);
  const { database } = config;
  if (!isPostgres(database) && !statSync(sqlitePath(database), { throwIfNoEntry: false })?.size) return;
  yield* await withExisting(orchestratorStores, database, async ({ store }) => {
    if ((await store.read.installation.get()) === null) return [];
    const driver = await one.definition.open(one.options, one.setting);
    try {
      return await compare(store, driver);
    } finally {
      await driver.close();
    }
  });
}
