import { createHash } from 'node:crypto';
import { counted } from '../../contract/counted.ts';
import type { Random } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Installation, PlatformUse, Reader, Store, Transaction } from '../model/store.ts';

/** The database has live resources on other platforms than the configured ones. */
export class PlatformMismatch extends Fatal {
  override readonly name = 'PlatformMismatch';
}

/** The driver's name of each platform, by the platform's name. */
export type PlatformDrivers = ReadonlyMap<string, string>;

/**
 * Returns the identity of this database on its platforms; makes it at the first start. Every resource has the id in its
 * note, so resources of another installation are recognised. `settings`: how each platform is reached, as text.
 *
 * @throws {PlatformMismatch} if live instances or volumes are on a platform that is not configured, has another
 *   driver now, or has the settings of another one: there they would all look gone
 */
export async function ensureInstallation(
  { store, random }: { store: Store; random: Random },
  drivers: PlatformDrivers,
  settings: ReadonlyMap<string, string> = new Map(),
): Promise<Installation> {
  const now = new Map(
    [...drivers].map(([name, driver]): [string, Known] => [
      name,
      { driver, digest: digestOf(settings.get(name)) },
    ]),
  );
  return store.transact(async (tx) => {
    const known = await tx.installation.get();
    const before = known === null ? new Map<string, Known>() : fromText(known.platform);
    await assertConfigured(tx, before, now);
    const all = [...now, ...(await kept(tx, before, now, store.isShared))];
    const platform = JSON.stringify(Object.fromEntries(all));
    if (known?.platform === platform) return known;
    const installation = { id: known?.id ?? random.bytes(12).toString('hex'), platform };
    await tx.installation.put(installation);
    return installation;
  });
}

/** The recorded facts about a platform. */
interface Known {
  driver: string;
  /** The digest of its settings. Undefined if unknown. */
  digest: string | undefined;
}

/** A digest that distinguishes settings without revealing their secrets. */
function digestOf(settings: string | undefined): string | undefined {
  return settings && createHash('sha256').update(settings).digest('hex').slice(0, 8);
}

function fromText(text: string): ReadonlyMap<string, Known> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, Known>));
}

/** The platforms that the database knows, including those that are not configured here. */
export function knownPlatforms({ platform }: Installation): string[] {
  return [...fromText(platform).keys()];
}

/** Platforms that are not configured here, but whose machines or volumes may reappear or which another server has. */
async function kept(
  tx: Transaction,
  before: ReadonlyMap<string, Known>,
  now: ReadonlyMap<string, Known>,
  isShared: boolean,
): Promise<[string, Known][]> {
  const others = [...before].filter(([name]) => !now.has(name));
  if (isShared) return others;
  const names = others.map(([name]) => name);
  const left = new Set((await leftPlatforms(tx, names)).map(({ platform }) => platform));
  const isRestored = (await tx.marks.get('restored_from')) !== null;
  for (const name of names)
    if (isRestored || (await tx.marks.get(`restored_from:${name}`)) !== null) left.add(name);
  return others.filter(([name]) => left.has(name));
}

/**
 * Ended rows on a platform that is no longer configured. Resources that their late creates make there are not removed.
 */
export interface LeftPlatform {
  platform: string;
  instances: number;
  volumes: number;
}

/** Counts the ended rows of the platforms in `away`, which are not configured. This reads all ended rows. */
export async function leftPlatforms(
  { instances, volumes }: Pick<Reader, 'instances' | 'volumes'>,
  away: readonly string[],
): Promise<LeftPlatform[]> {
  if (away.length === 0) return [];
  const ended = new Map((await instances.endedByPlatform()).map(({ platform, count }) => [platform, count]));
  const gone = new Map((await volumes.endedByPlatform()).map(({ platform, count }) => [platform, count]));
  return away
    .filter((platform) => ended.has(platform) || gone.has(platform))
    .map((platform) => ({
      platform,
      instances: ended.get(platform) ?? 0,
      volumes: gone.get(platform) ?? 0,
    }));
}

async function assertConfigured(
  tx: Reader,
  before: ReadonlyMap<string, Known>,
  now: ReadonlyMap<string, Known>,
): Promise<void> {
  const instances = byName(await tx.instances.countByPlatform());
  const volumes = byName(await tx.volumes.countByPlatform());
  for (const name of new Set([...instances.keys(), ...volumes.keys()])) {
    const uses = [instances.get(name), volumes.get(name)] as const;
    const held = `The database holds ${counted(uses[0]?.count ?? 0, 'instance')} and ${counted(uses[1]?.count ?? 0, 'volume')} of the platform`;
    const such = `"${name}" (such as ${uses.flatMap((use) => use?.anId ?? []).join(' and ')})`;
    const driver = now.get(name)?.driver;
    const driverBefore = before.get(name)?.driver ?? driver;
    if (driver === undefined)
      throw new PlatformMismatch(
        `${held} ${such}, and the configuration has no platform of that name: add the platform that made them to \`platforms:\` as \`${name}\`, or delete them first.`,
      );
    if (driver !== driverBefore)
      throw new PlatformMismatch(
        `${held} "${driverBefore}", and the configuration names "${driver}": configure the platform that made them, or delete them there first.`,
      );
    const other = formerName(name, before, now);
    if (other !== undefined)
      throw new PlatformMismatch(
        `${held} ${such}, and the configuration now uses that name for the platform that was "${other}": all of them would look gone. Give each platform its previous name.`,
      );
  }
}

/** The name that the settings of platform `name` had before. Undefined if they had the same name, or are new. */
function formerName(
  name: string,
  before: ReadonlyMap<string, Known>,
  now: ReadonlyMap<string, Known>,
): string | undefined {
  const digest = now.get(name)?.digest;
  if (digest === undefined || before.get(name)?.digest === digest) return undefined;
  return [...before].find(([other, known]) => other !== name && known.digest === digest)?.[0];
}

function byName(uses: readonly PlatformUse[]): ReadonlyMap<string, PlatformUse> {
  return new Map(uses.map((use) => [use.platform, use]));
}
