import { catalog, SOUND_PLATFORM } from './catalog.ts';
import { isSoldThere, nothingStandsStill } from './invariants/sound-platform.ts';
import type { World } from './world.ts';

/** A server lists the platform before it sells anything there. */
const STARTED_MS = 90_000;
const OFFER = 'cpu';

/** I32, at any time: what goes wrong on one platform is not noticed on the other. */
export async function checkSoundPlatform(world: World, startedAt: number): Promise<void> {
  const { scenario, scheduler, inspector } = world;
  if (!scenario.hasSoundServers) return;
  for (const row of inspector.history.instances())
    nothingStandsStill(row, inspector.history.lastWrite(row.id) ?? 0, scheduler.now);
  if (scheduler.now - startedAt > STARTED_MS) await checkOffered(world);
}

async function checkOffered(world: World): Promise<void> {
  const before = await freeUnits(world);
  for (const { serving } of world.replicas) {
    const offered = await serving?.listOffered(OFFER);
    const after = await freeUnits(world);
    if (offered === undefined) continue;
    for (const [region, units] of before)
      isSoldThere(region, Math.min(units, after.get(region) ?? 0), offered);
  }
}

/** Units that are not claimed, where the operator has cordoned nothing. */
async function freeUnits({ database, cordons }: World): Promise<Map<string, number>> {
  const use = await database.store.read.claims.use();
  const claimed = new Map(
    use.filter(({ offerId }) => offerId === OFFER).map((entry) => [entry.region, entry.claimed]),
  );
  const placements = catalog.offers.get(OFFER)?.placements ?? [];
  return new Map(
    placements.map(({ region, units }) => {
      const isCordoned = cordons.mayKeep({ region, offer: OFFER, platform: SOUND_PLATFORM });
      return [region, isCordoned ? 0 : units - (claimed.get(region) ?? 0)];
    }),
  );
}
