import { z } from 'zod';
import { compareNames, sortNames } from '../../../contract/compare-names.ts';
import type { Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { span, timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import { deviceStates, hostStates, type ObservedHost } from '../../model/inventory.ts';
import { markOf } from '../../model/marks.ts';
import type { HostUse, Reader, Store } from '../../model/store.ts';

const shareSchema = z
  .object({ total: z.number(), taken: z.number() })
  .nullable()
  .meta({ description: 'Total and used. Null: unknown.' });

export const deviceSchema = z.object({
  id: z.string(),
  type: z.string(),
  state: z.enum(deviceStates),
  ref: z.string().nullable().meta({ description: 'The owner ref of the instance that has it.' }),
  detail: z.string().nullable(),
});

const hostSchema = z.object({
  host: z.string().nullable().meta({ description: 'Null: not reported by the platform.' }),
  instances: z.record(z.string(), z.int()).meta({ description: 'By status.' }),
  state: z.enum(hostStates).nullable().meta({
    description:
      'Whether it accepts new machines; `silent`: it does not answer. Null: not reported by the driver.',
  }),
  detail: z.string().nullable().meta({ description: 'Why it is not open.' }),
  vcpus: shareSchema,
  memory_gb: shareSchema,
  disk_gb: shareSchema,
  devices: z.array(deviceSchema).meta({ description: 'Its devices for sale.' }),
});
export type HostRow = z.infer<typeof hostSchema>;

/** A platform, its driver's count, and its hosts. */
export const platformViewSchema = z
  .object({
    platform: z.string(),
    driver: z.string().nullable().meta({ description: 'Null: no longer configured.' }),
    down_since: timeOrNullSchema.meta({
      description: 'Since when it is not trusted and its transitions are frozen; null: it is trusted.',
    }),
    volumes_doubted_since: timeOrNullSchema.meta({
      description: 'Since when too many of its volumes are missing to count as deleted; null: not the case.',
    }),
    restored_from: timeOrNullSchema.meta({
      description:
        'The time of the backup that the database was restored from; null once it has been compared.',
    }),
    inventory: z
      .object({
        age_s: z.number().meta({ description: 'Age of the last count.' }),
        free_units: z.record(z.string(), z.int()).meta({ description: 'By offer.' }),
        limited_by: z.array(z.string()).meta({
          description:
            'Why fewer units are free than the hosts have room for, such as `quota: cores 40 of 40`; empty: nothing else limits them, or the driver does not say.',
        }),
      })
      .nullable()
      .meta({ description: "The platform's own count. Null: it does not count, or has not counted yet." }),
    hosts: z
      .array(hostSchema)
      .meta({ description: 'Hosts reported by the driver, and others that have instances.' }),
  })
  .meta({ id: 'Platform' });
type PlatformView = z.infer<typeof platformViewSchema>;

const platformListSchema = z.object({ platforms: z.array(platformViewSchema) }).meta({ id: 'PlatformList' });

/** Facts about a configured platform. */
export interface PlatformFacts {
  driver: string;
  /** Whether single hosts of the platform can be cordoned. */
  placesOnHosts: boolean;
  /** The count of a running server. Absent if the driver does not count, or no server was asked. */
  inventory?: {
    readonly freeUnits: ReadonlyMap<string, number>;
    readonly hosts: readonly ObservedHost[];
    readonly limitedBy: readonly string[];
    readonly ageMs: number;
  };
}

/** The configured platforms, then others that have instances. */
export async function listPlatforms(
  read: Pick<Reader, 'instances' | 'marks'>,
  configured: ReadonlyMap<string, PlatformFacts>,
): Promise<PlatformView[]> {
  const hosts = Map.groupBy(await read.instances.countByHost(), ({ platform }) => platform);
  const names = new Set([...configured.keys(), ...sortNames(hosts.keys())]);
  return Promise.all(
    [...names].map(async (platform) => {
      const facts = configured.get(platform);
      const markAt = async (name: 'platform_down_since' | 'volumes_doubted_since' | 'restored_from') =>
        toTime(await read.marks.get(markOf(platform, name)));
      const byHost = Map.groupBy(hosts.get(platform) ?? [], ({ host }) => host);
      return {
        platform,
        driver: facts?.driver ?? null,
        down_since: await markAt('platform_down_since'),
        volumes_doubted_since: await markAt('volumes_doubted_since'),
        restored_from: await markAt('restored_from'),
        inventory: toInventory(facts?.inventory),
        hosts: toHostRows(byHost, facts?.inventory?.hosts ?? []),
      };
    }),
  );
}

/** Each known host, ordered by name. */
function toHostRows(
  instances: ReadonlyMap<string | null, readonly HostUse[]>,
  observed: readonly ObservedHost[],
): HostRow[] {
  const observedByName = new Map(observed.map((one) => [one.host, one]));
  const names = new Set([...observedByName.keys(), ...instances.keys()]);
  // Instances without a host come last.
  const sorted = [...names].sort((a, b) =>
    a === null || b === null ? Number(a === null) - Number(b === null) : compareNames(a, b),
  );
  return sorted.map((host) => {
    const found = host === null ? undefined : observedByName.get(host);
    const counts = instances.get(host) ?? [];
    return {
      host,
      instances: Object.fromEntries(counts.map(({ status, count }) => [status, count])),
      state: found?.state ?? null,
      detail: found?.detail ?? null,
      vcpus: found?.vcpus ?? null,
      memory_gb: found?.memoryGb ?? null,
      disk_gb: found?.diskGb ?? null,
      devices: (found?.devices ?? []).map(({ ref = null, detail = null, id, type, state }) => ({
        id,
        type,
        state,
        ref,
        detail,
      })),
    };
  });
}

function toInventory(inventory: PlatformFacts['inventory']): PlatformView['inventory'] {
  if (inventory === undefined || !Number.isFinite(inventory.ageMs)) return null;
  const { ageMs, freeUnits, limitedBy } = inventory;
  return { age_s: ageMs / 1000, free_units: Object.fromEntries(freeUnits), limited_by: [...limitedBy] };
}

export interface Deps {
  store: Pick<Store, 'read'>;
  platforms: ReadonlyMap<string, PlatformFacts>;
}

export const platformsView = defineView({
  name: 'listPlatforms',
  tag: 'Views',
  path: '/platforms',
  summary: 'Platforms with their health, inventory and hosts',
  description: 'Configured platforms, then others that still have instances.',
  reply: ['The platforms.', platformListSchema],
  commands: [
    {
      name: 'platforms ls',
      description: 'list the platforms and their health',
      list: {},
    },
  ],
  list: {
    rows: 'platforms',
    title: 'Platforms',
    none: 'There is no platform.',
    columns: [
      { field: 'platform', page: ({ platform }) => `/platforms/${encodeURIComponent(platform)}` },
      'driver',
      { field: 'down_since', title: 'state', text: stateOf, tone: toneOfState },
      { field: 'hosts', kind: 'count', text: ({ hosts }) => hosts.length },
      { field: 'hosts', title: 'instances', kind: 'text', text: ({ hosts }) => countInstances(hosts) },
      { field: 'volumes_doubted_since', isWide: true },
      { field: 'restored_from', isWide: true },
    ],
  },
  read: async ({ store, platforms }: Deps) => ({ platforms: await listPlatforms(store.read, platforms) }),
});

export function stateOf({ down_since: since }: PlatformView, now: number): string {
  return since === null ? 'trusted' : `frozen for ${span(now - Date.parse(since))}`;
}

export function toneOfState({ down_since: since }: PlatformView): Tone {
  return since === null ? 'good' : 'bad';
}

/** The number of instances by status: ONLINE and PROVISIONING first. */
export function countInstances(hosts: readonly Pick<HostRow, 'instances'>[]): string {
  const counts: Record<string, number> = { ONLINE: 0, PROVISIONING: 0 };
  for (const { instances } of hosts)
    for (const [status, count] of Object.entries(instances)) counts[status] = (counts[status] ?? 0) + count;
  const texts = Object.entries(counts).flatMap(([status, count]) =>
    count > 0 ? [`${count} ${status}`] : [],
  );
  return texts.length === 0 ? 'none' : texts.join(', ');
}
