import type { Random } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { DriverManifest } from '../model/platform-driver.ts';
import type { Installation, Reader, Store } from '../model/store.ts';

/** The database was filled on another platform than the one that is configured now. */
export class PlatformMismatch extends Fatal {
  override readonly name = 'PlatformMismatch';
}

/**
 * What this database is called on the platform, made at its first start. Every resource carries the id in its note:
 * a machine of another installation is never taken for one of ours.
 *
 * @throws {PlatformMismatch} if the database has live instances or volumes of another platform: here they would all
 *   look gone.
 */
export async function ensureInstallation(
  { store, random }: { store: Store; random: Random },
  { name: platform }: Pick<DriverManifest, 'name'>,
): Promise<Installation> {
  return store.transact(async (tx) => {
    const known = await tx.installation.get();
    if (known?.platform === platform) return known;
    if (known !== null) await assertEmpty(tx, known.platform, platform);
    const installation = { id: known?.id ?? random.bytes(12).toString('hex'), platform };
    await tx.installation.put(installation);
    return installation;
  });
}

async function assertEmpty(tx: Reader, before: string, now: string): Promise<void> {
  const statuses = await tx.instances.countByStatus();
  const instances = statuses.reduce((sum, { count }) => sum + count, 0);
  const volumes = await tx.volumes.countLive();
  if (instances + volumes === 0) return;
  throw new PlatformMismatch(
    `The database holds ${instances} instances and ${volumes} volumes of the platform "${before}", and the configuration names "${now}": configure the platform that made them, or delete them there first.`,
  );
}
