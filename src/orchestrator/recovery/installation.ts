import type { Random } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import type { Installation, PlatformUse, Reader, Store } from '../model/store.ts';

/** The database was filled on other platforms than those that are configured now. */
export class PlatformMismatch extends Fatal {
  override readonly name = 'PlatformMismatch';
}

/** The name of each platform with that of its driver. */
export type PlatformDrivers = ReadonlyMap<string, string>;

/**
 * What this database is called on its platforms, made at its first start. Every resource carries the id in its note:
 * a machine of another installation is never taken for one of ours.
 *
 * @throws {PlatformMismatch} if the database has live instances or volumes of a platform that is not configured, or has
 *   another driver now: there they would all look gone.
 */
export async function ensureInstallation(
  { store, random }: { store: Store; random: Random },
  drivers: PlatformDrivers,
): Promise<Installation> {
  return store.transact(async (tx) => {
    const platform = toText(drivers);
    const known = await tx.installation.get();
    await assertConfigured(tx, known === null ? new Map() : fromText(known.platform), drivers);
    if (known?.platform === platform) return known;
    const installation = { id: known?.id ?? random.bytes(12).toString('hex'), platform };
    await tx.installation.put(installation);
    return installation;
  });
}

/** A driver's name alone, for the platform `default` alone; otherwise `NAME=DRIVER` for each. */
function toText(drivers: PlatformDrivers): string {
  const only = drivers.size === 1 ? drivers.get(DEFAULT_PLATFORM) : undefined;
  return only ?? [...drivers].map(([name, driver]) => `${name}=${driver}`).join(' ');
}

function fromText(text: string): PlatformDrivers {
  if (!text.includes('=')) return new Map([[DEFAULT_PLATFORM, text]]);
  return new Map(text.split(' ').map((pair) => pair.split('=') as [string, string]));
}

async function assertConfigured(tx: Reader, before: PlatformDrivers, now: PlatformDrivers): Promise<void> {
  const instances = byName(await tx.instances.countByPlatform());
  const volumes = byName(await tx.volumes.countByPlatform());
  for (const name of new Set([...instances.keys(), ...volumes.keys()])) {
    const uses = [instances.get(name), volumes.get(name)] as const;
    const held = `The database holds ${uses[0]?.count ?? 0} instances and ${uses[1]?.count ?? 0} volumes of the platform`;
    const driver = now.get(name);
    const driverBefore = before.get(name) ?? driver;
    if (driver === undefined)
      throw new PlatformMismatch(
        `${held} "${name}" (such as ${uses.flatMap((use) => use?.anId ?? []).join(' and ')}), and the configuration has no platform of that name: add the one that made them to \`platforms:\` as \`${name}\`, or delete them first.`,
      );
    if (driver !== driverBefore)
      throw new PlatformMismatch(
        `${held} "${driverBefore}", and the configuration names "${driver}": configure the platform that made them, or delete them there first.`,
      );
  }
}

function byName(uses: readonly PlatformUse[]): ReadonlyMap<string, PlatformUse> {
  return new Map(uses.map((use) => [use.platform, use]));
}
