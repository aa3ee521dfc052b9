import type { Random } from '../ports/clock.ts';
import type { DriverManifest } from '../ports/platform-driver.ts';
import type { Installation, Store } from '../ports/store.ts';

/** The database was filled on another platform than the one that is configured now. */
export class PlatformMismatch extends Error {
  override readonly name = 'PlatformMismatch';
}

/**
 * What this database is called on the platform, made at its first start. Every resource carries the id in its note:
 * a machine of another installation is never taken for one of ours.
 *
 * @throws {PlatformMismatch} if the database has live instances of another platform: here they would all look gone.
 */
export async function ensureInstallation(
  { store, random }: { store: Store; random: Random },
  { name: platform }: Pick<DriverManifest, 'name'>,
): Promise<Installation> {
  return store.transact(async (tx) => {
    const known = await tx.installation.get();
    if (known?.platform === platform) return known;
    const live = known === null ? [] : await tx.instances.countByStatus();
    if (known !== null && live.length > 0) {
      const count = live.reduce((sum, entry) => sum + entry.count, 0);
      throw new PlatformMismatch(
        `The database holds ${count} instances of the platform "${known.platform}", and the configuration names "${platform}": configure the platform that made them, or delete them there first.`,
      );
    }
    const installation = { id: known?.id ?? random.bytes(12).toString('hex'), platform };
    await tx.installation.put(installation);
    return installation;
  });
}
