import { z } from 'zod';
import type { ListIn, Tone } from '../../../operator-kit/columns.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import { DAY_MS } from '../../../ports/clock.ts';
import type { LossCapOptions } from '../../model/options.ts';
import type { ActiveAtProvider, DeploymentOutcomes, Reader } from '../../model/store.ts';
import { countLosses } from '../../providers/loss-cap.ts';
import type { ViewDeps } from './pages.ts';

/** What a serving process knows about a provider from its calls. */
export interface ProviderFacts {
  /** When its catalog was last read; null: never. */
  catalogReadAt: number | null;
  offers: number;
  offersInStock: number;
  /** When the provider's last seen TLS certificate expires; null: none was seen. */
  certificateEndsAt: number | null;
  /** The current problems of its answers. */
  problems: readonly string[];
}

/** The configured providers by id; null: this process does not call providers, as on a command line. */
export type KnownProviders = ReadonlyMap<string, ProviderFacts | null>;

const providerStates = ['ok', 'stale', 'failing', 'not_configured', 'unknown'] as const;

const failureSchema = z.object({ reason: z.string(), count: z.int() });

/** A provider as an operator sees it. */
export const providerRowSchema = z
  .object({
    provider: z.string(),
    state: z.enum(providerStates).meta({
      description:
        '`failing`: calls fail, or losses are held · `stale`: its data is older than five minutes · `not_configured`: it has deployments or volumes but is missing in the configuration · `unknown`: it was not called, as on a command line.',
    }),
    problems: z.array(z.string()),
    catalog_read_at: timeOrNullSchema.meta({
      description: 'When a server last read its catalog; null: never.',
    }),
    certificate_ends_at: timeOrNullSchema.meta({
      description: 'Expiry of the TLS certificate seen last; null: none was seen.',
    }),
    offers: z.int().nullable(),
    offers_in_stock: z.int().nullable(),
    deploying: z.int(),
    running: z.int(),
    stopped: z.int(),
    volumes: z.int(),
    waiting_for_ssh: z.int(),
    to_sync: z.int(),
    losses_held: z.int(),
    losses: z.int().meta({
      description:
        'Deployments and volumes that ended because it answered 404, within the window of the cap.',
    }),
    losses_cap: z.int(),
    losses_accepted_until: timeOrNullSchema,
    confirmed_until: timeOrNullSchema.meta({
      description: 'Last confirmation of the deployment that has been unconfirmed for longest.',
    }),
    made: z.int().meta({ description: 'Deployments made in the last 24 hours.' }),
    failed: z.int().meta({ description: 'Of these, the failed ones.' }),
    failures: z.array(failureSchema).meta({ description: 'Failure reasons, most frequent first.' }),
  })
  .meta({ id: 'Provider' });
export type ProviderRow = z.infer<typeof providerRowSchema>;

const providerListSchema = z.object({ providers: z.array(providerRowSchema) }).meta({ id: 'ProviderList' });

/** A provider is stale after this time, which is longer than several failed polls and catalog reads. */
const STALE_MS = 5 * 60_000;

/** The configured providers, then others that rows refer to. */
export async function listProviders(
  read: Reader,
  { known, maxLosses, now }: { known: KnownProviders; maxLosses: LossCapOptions; now: number },
): Promise<ProviderRow[]> {
  const [active, outcomes, volumes, unproved, toSync, lost] = await Promise.all([
    read.deployments.countActiveByProvider(),
    read.deployments.countOutcomes(now - DAY_MS),
    read.volumes.countByProvider(),
    read.deployments.countUnproved(),
    read.deployments.countToSync(),
    read.losses.providers(),
  ]);
  const named = [active, volumes, unproved, toSync].flatMap((rows) => rows.map((row) => row.providerId));
  const ids = [...new Set([...known.keys(), ...named, ...lost])];
  return Promise.all(
    ids.map(async (id) => {
      const losses = await countLosses(read, id, maxLosses, now);
      const row = {
        provider: id,
        ...toActive(active.filter(({ providerId }) => providerId === id)),
        volumes: countOf(volumes, id),
        waiting_for_ssh: countOf(unproved, id),
        to_sync: countOf(toSync, id),
        losses_held: losses.held,
        losses: losses.count,
        losses_cap: losses.cap,
        losses_accepted_until: toTime(losses.acceptedUntil),
        ...toOutcomes(outcomes.filter(({ providerId }) => providerId === id)),
      };
      return { ...row, ...toHealth(row, known.get(id), now) };
    }),
  );
}

function toActive(rows: readonly ActiveAtProvider[]) {
  const countOfStatus = (status: string): number => rows.find((row) => row.status === status)?.count ?? 0;
  const confirmed = rows.map(({ confirmedUntil }) => confirmedUntil).filter((at) => at !== null);
  return {
    deploying: countOfStatus('deploying'),
    running: countOfStatus('running'),
    stopped: countOfStatus('stopped'),
    confirmed_until: confirmed.length === 0 ? null : toTime(Math.min(...confirmed)),
  };
}

function toOutcomes(rows: readonly DeploymentOutcomes[]) {
  const failures = rows.flatMap(({ failureReason: reason, count }) =>
    reason === null ? [] : [{ reason, count }],
  );
  return {
    made: rows.reduce((sum, { count }) => sum + count, 0),
    failed: failures.reduce((sum, { count }) => sum + count, 0),
    failures: failures.toSorted((a, b) => b.count - a.count),
  };
}

type Health = Pick<
  ProviderRow,
  'state' | 'problems' | 'catalog_read_at' | 'certificate_ends_at' | 'offers' | 'offers_in_stock'
>;

function toHealth(
  row: Pick<ProviderRow, 'losses_held' | 'losses_accepted_until' | 'confirmed_until'>,
  facts: ProviderFacts | null | undefined,
  now: number,
): Health {
  const held = row.losses_held === 0 ? [] : [`${row.losses_held} losses are held until an operator decides`];
  const problems = [...(facts?.problems ?? []), ...held];
  const confirmedAt = row.confirmed_until === null ? now : Date.parse(row.confirmed_until);
  const oldest = Math.min(confirmedAt, facts?.catalogReadAt ?? 0);
  return {
    state: stateOf(),
    problems,
    catalog_read_at: toTime(facts?.catalogReadAt ?? null),
    certificate_ends_at: toTime(facts?.certificateEndsAt ?? null),
    offers: facts?.offers ?? null,
    offers_in_stock: facts?.offersInStock ?? null,
  };

  function stateOf(): ProviderRow['state'] {
    if (facts === undefined) return 'not_configured';
    if (problems.length > 0) return 'failing';
    if (facts === null) return 'unknown';
    return now - oldest > STALE_MS ? 'stale' : 'ok';
  }
}

function countOf(counts: readonly { providerId: string; count: number }[], id: string): number {
  return counts.find(({ providerId }) => providerId === id)?.count ?? 0;
}

/** Dependencies of views that show providers. */
export interface ProviderDeps extends ViewDeps {
  /** The providers as this server sees them now. */
  providers: () => KnownProviders;
  maxLosses: LossCapOptions;
}

const TONES: Readonly<Record<ProviderRow['state'], Tone>> = {
  ok: 'good',
  stale: 'wait',
  failing: 'bad',
  not_configured: 'bad',
  unknown: 'wait',
};

const toneOfProvider = ({ state }: Pick<ProviderRow, 'state'>): Tone => TONES[state];

/** The page with the deployments at a provider. */
const pageOfProvider = ({ provider }: { provider: string }): string =>
  `/deployments?provider=${encodeURIComponent(provider)}`;

const CALL_THEM = 'to call each from the command line: berth marketplace providers check';

/** The columns of a list of them. */
export const providersList: ListIn<'providers', ProviderRow> = {
  rows: 'providers',
  title: 'Providers',
  about: `as this server sees them; ${CALL_THEM}`,
  none: 'No provider is configured, and none is in the database.',
  columns: [
    { field: 'provider', page: pageOfProvider },
    {
      field: 'problems',
      under: 'provider',
      text: ({ problems }) => problems.join('; ') || null,
      isWide: true,
    },
    { field: 'state', tone: toneOfProvider },
    'running',
    'deploying',
    'stopped',
    { field: 'volumes', isWide: true },
    'confirmed_until',
    { field: 'catalog_read_at', title: 'catalog read', isWide: true },
    { field: 'certificate_ends_at', title: 'certificate ends', isWide: true },
    { field: 'offers_in_stock', isWide: true },
    { field: 'waiting_for_ssh', title: 'no SSH yet' },
    { field: 'to_sync', isWide: true },
    {
      field: 'losses_held',
      title: 'losses held',
      tone: ({ losses_held: held }) => (held === 0 ? undefined : 'bad'),
    },
    { field: 'losses_accepted_until', isWide: true },
    { field: 'made', title: 'made in 24 h' },
    { field: 'failed' },
    {
      field: 'failures',
      title: 'why',
      under: 'failed',
      text: ({ failures }) => failures.map(({ reason, count }) => `${reason} ${count}`).join(', '),
    },
  ],
};

export const providersView = defineView({
  name: 'listProviders',
  tag: 'Views',
  path: '/providers',
  summary: 'Providers with their health, age of their data, and recent failures',
  description:
    'Configured providers first, then others that still have deployments or volumes. Problems are those seen by this server.',
  reply: ['The providers.', providerListSchema],
  commands: [
    {
      name: 'providers ls',
      description: 'list the providers: their deployments, last confirmation and failures of 24 hours',
      list: {},
    },
  ],
  list: providersList,
  read: async ({ store: { read }, clock, providers, maxLosses }: ProviderDeps) => ({
    providers: await listProviders(read, { known: providers(), maxLosses, now: clock.now() }),
  }),
});
