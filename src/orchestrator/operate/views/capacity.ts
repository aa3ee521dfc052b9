import { z } from 'zod';
import { defineView, type TextPart } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import { activeCordons } from '../../capacity/cordons.ts';
import {
  findObstacles,
  freeUnits,
  type Obstacle,
  type Stock,
  type Supply,
} from '../../capacity/deployable.ts';
import type { Catalog, Offer } from '../../catalog/catalog.ts';
import type { CordonRecord } from '../../model/cordon.ts';
import { markOf } from '../../model/marks.ts';
import type { Reader, Store } from '../../model/store.ts';

const reasons = [
  'platform_frozen',
  'region_drained',
  'region_maintenance',
  'offer_maintenance',
  'cordoned',
  'platform_full',
  'sold_out',
] as const;

/** The units of an offer in a region, and the reasons why none can be sold. */
const placementSchema = z
  .object({
    offer: z.string(),
    region: z.string(),
    platform: z.string(),
    units: z.int().meta({ description: 'Units in the catalog.' }),
    platform_units: z.int().nullable().meta({
      description: 'Units that the platform has room for, including used ones. Null: no limit.',
    }),
    claimed: z.int().meta({ description: 'Units that instances hold.' }),
    failed: z.int().meta({
      description:
        'Of these, units of failed instances whose machines are kept for the operator or being removed.',
    }),
    without_row: z.int().meta({ description: 'Units of machines without a row.' }),
    available: z.int().meta({ description: 'Units available now.' }),
    unavailable: z
      .array(z.object({ reason: z.enum(reasons), text: z.string() }))
      .meta({ description: 'Every reason why none are available now; empty: some are.' }),
  })
  .meta({ id: 'Placement' });
export type PlacementView = z.infer<typeof placementSchema>;

/** Storage of a region for volumes. */
const storageSchema = z
  .object({
    region: z.string(),
    storage_gb: z.number().nullable().meta({ description: 'From the catalog; null: no limit.' }),
    claimed_gb: z.number(),
    without_row_gb: z.number(),
  })
  .meta({ id: 'Storage' });

const capacitySchema = z
  .object({
    placements: z.array(placementSchema),
    storage: z.array(storageSchema),
    is_counted: z.boolean().meta({
      description:
        'Whether the room of the platforms is counted, as a server does. False: by the rows alone, and `available` may be lower.',
    }),
  })
  .meta({ id: 'Capacity' });
export type CapacityView = z.infer<typeof capacitySchema>;

type CapacityReader = Pick<Reader, 'claims' | 'storageClaims' | 'marks' | 'cordons'>;

/** The capacity of each offer in each of its regions. */
export async function readCapacity(
  read: CapacityReader,
  { catalog, supply, now }: { catalog: Catalog; supply: Supply; now: number },
): Promise<Omit<CapacityView, 'is_counted'>> {
  const [use, failed, storageUse, cordons, downSince] = await Promise.all([
    read.claims.use(),
    read.claims.ofFailed(),
    read.storageClaims.use(),
    activeCordons(read, now),
    platformsDown(read, new Set([...catalog.offers.values()].map(({ platform }) => platform))),
  ]);
  const stock: Stock = { catalog, supply, cordons };
  const unitsOf = freeUnits(stock, use);
  const claimedGb = new Map(storageUse.map((one) => [one.region, one.claimedGb]));
  return {
    placements: [...catalog.offers.values()].flatMap((offer) =>
      offer.placements.map(({ region, units }) => {
        const { claimed, free } = unitsOf({ offer, region });
        const row = {
          offer: offer.id,
          region,
          platform: offer.platform,
          units,
          platform_units: supply.platformUnits(offer, region) ?? null,
          claimed,
          failed: failed.find((one) => one.offerId === offer.id && one.region === region)?.claimed ?? 0,
          without_row: supply.unclaimedUnits(offer.id, region),
          available: free,
        };
        const unavailable = row.available > 0 ? [] : whyUnavailable(row, { stock, offer, downSince });
        return { ...row, unavailable };
      }),
    ),
    storage: [...catalog.regions.values()]
      .filter(({ volumeTypes }) => volumeTypes.length > 0)
      .map(({ token, storageGb }) => ({
        region: token,
        storage_gb: storageGb ?? null,
        claimed_gb: claimedGb.get(token) ?? 0,
        without_row_gb: supply.unclaimedStorageGb(token),
      })),
  };
}

type Unavailable = PlacementView['unavailable'];

interface Circumstances {
  stock: Stock;
  offer: Offer;
  downSince: ReadonlyMap<string, number>;
}

/** Returns every reason, so that the operator sees what is left after fixing one. */
function whyUnavailable(
  row: Omit<PlacementView, 'unavailable'>,
  { stock, offer, downSince }: Circumstances,
): Unavailable {
  const since = downSince.get(offer.platform);
  const texts = {
    platform_frozen:
      since === undefined
        ? `The machines of platform ${offer.platform} have not been compared with the rows yet.`
        : `Platform ${offer.platform} has been frozen since ${toTime(since)}.`,
    region_drained: 'The region is drained in the catalog.',
    region_maintenance: 'The region is under maintenance in the catalog.',
    offer_maintenance: 'The offer is under maintenance in the catalog.',
  };
  const tell = (found: Obstacle): Unavailable[number] => ({
    reason: found.reason,
    text: found.reason === 'cordoned' ? describeCordon(found.cordon) : texts[found.reason],
  });
  const { region } = row;
  const obstacles = stock.supply.obstacles(offer, region);
  return [...findObstacles(stock, { offer, region }).map(tell), ...noneLeft(row, obstacles)];
}

function describeCordon({ kind, name, since, until, isMaintenance, reason, by }: CordonRecord): string {
  const what = isMaintenance ? 'under maintenance' : 'cordoned';
  const end = until === null ? '' : ` until ${toTime(until)}`;
  const why = reason === null ? '' : `: ${reason}`;
  return `The ${kind} ${name} is ${what} by ${by} since ${toTime(since)}${end}${why}.`;
}

function noneLeft(
  { units, platform_units: room, claimed, failed, without_row: others }: Counted,
  obstacles: readonly string[],
): Unavailable {
  if (units === 0 && claimed === 0)
    return [{ reason: 'sold_out', text: 'The catalog lists no units in this region.' }];
  const ofCatalog = units - others;
  const taken = [
    `${claimed} units`,
    failed > 0 && `${failed} of them by instances that failed, whose machines are still there`,
    others > 0 && `and ${others} by machines without a row`,
  ]
    .filter(Boolean)
    .join(', ');
  if (claimed >= ofCatalog)
    return [{ reason: 'sold_out', text: `Used of the ${units} in the catalog: ${taken}.` }];
  if (room !== null && claimed >= room) {
    const text = `The platform has room for ${room} units; ${claimed} are used${failed > 0 ? ` (${failed} by instances that failed)` : ''}. The catalog has ${units}.${obstacles.length === 0 ? '' : ` Limits: ${obstacles.join('; ')}.`}`;
    return [{ reason: 'platform_full', text }];
  }
  return [];
}

type Counted = Pick<PlacementView, 'units' | 'platform_units' | 'claimed' | 'failed' | 'without_row'>;

/** When each platform that is down went down, in milliseconds since the epoch. */
async function platformsDown(
  { marks }: Pick<Reader, 'marks'>,
  platforms: ReadonlySet<string>,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const platform of platforms) {
    const since = await marks.get(markOf(platform, 'platform_down_since'));
    if (since !== null) found.set(platform, since);
  }
  return found;
}

/** The state according to the rows alone, for a command that runs without a server. */
async function supplyByRows(read: Pick<Reader, 'marks'>, platforms: Iterable<string>): Promise<Supply> {
  const down = await platformsDown(read, new Set(platforms));
  return {
    isOpen: (platform) => !down.has(platform),
    unclaimedUnits: () => 0,
    platformUnits: () => undefined,
    obstacles: () => [],
    isCountPartial: () => false,
    areStorageClaimsComplete: () => true,
    unclaimedStorageGb: () => 0,
  };
}

interface CapacityDeps {
  store: Pick<Store, 'read'>;
  catalog: Catalog;
  /** Absent without a server. */
  supply?: Supply;
  clock: Pick<Clock, 'now'>;
  platforms: ReadonlyMap<string, unknown>;
}

/** The rows of a command. Without a server, null: the platform may have no room for what the rows leave. */
function toKnown({ placements, is_counted: isCounted }: CapacityView) {
  if (isCounted) return placements;
  return placements.map(({ available, platform_units: _, ...row }) => ({
    ...row,
    available: available === 0 ? 0 : null,
  }));
}

function describe(capacity: CapacityView): TextPart[] {
  const { storage, is_counted: isCounted } = capacity;
  return [
    toKnown(capacity).map(({ offer, region, platform, units, claimed, available, unavailable }) => ({
      offer,
      region,
      platform,
      units,
      taken: claimed,
      available: available ?? '?',
      why_not: unavailable.map(({ text }) => text).join(' '),
    })),
    storage.map((one) => ({ 'storage of': one.region, gb: one.storage_gb, 'taken gb': one.claimed_gb })),
    ...(isCounted ? [] : ['? is known only to a running server: use its context, see `berth context`.']),
  ];
}

export const capacityView = defineView({
  name: 'getCapacity',
  tag: 'Views',
  path: '/capacity',
  summary: 'Units of each offer and region, and why none are available',
  description: 'As this server sells them: from the catalog, the claims and the counts of the platforms.',
  reply: ['The capacity.', capacitySchema],
  commands: [
    {
      name: 'capacity ls',
      description: 'list sold units, and why an offer has none available',
      toData: (capacity) => ({ ...capacity, placements: toKnown(capacity) }),
      toText: describe,
    },
  ],
  read: async ({ store: { read }, catalog, supply, clock, platforms }: CapacityDeps) => ({
    ...(await readCapacity(read, {
      catalog,
      supply: supply ?? (await supplyByRows(read, platforms.keys())),
      now: clock.now(),
    })),
    is_counted: supply !== undefined,
  }),
});
