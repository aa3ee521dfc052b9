import { z } from 'zod';
import { counted } from '../../contract/counted.ts';
import { timestampSchema } from '../../contract/values.ts';
import { defineAction, defineView } from '../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../operator-kit/views/values.ts';
import { OperatorError } from '../model/own-rows.ts';
import { pausesNow, type SalesPause, type SalesScope } from '../model/sales-pause.ts';
import type { Reader } from '../model/store.ts';
import type { CatalogOffer, Providers } from '../providers/provider.ts';
import type { OrderDeps } from './orders.ts';
import { reasonField, requireReason } from './suspensions.ts';
import type { ViewDeps } from './views/pages.ts';

const pauseSchema = z
  .object({
    provider: z.string(),
    region: z.string().nullable().meta({ description: 'Null: all regions.' }),
    offer: z.string().nullable().meta({ description: 'Null: all offers, and volumes.' }),
    reason: z.string(),
    since: timestampSchema,
    until: timeOrNullSchema.meta({ description: 'Null: until it is resumed.' }),
    by: z.string(),
  })
  .meta({ id: 'SalesPause' });

type Pause = z.output<typeof pauseSchema>;

/** The pauses in force, as an operator sees them. */
async function listPauses(read: Pick<Reader, 'pauses'>, now: number): Promise<Pause[]> {
  return (await pausesNow(read, now)).map(({ providerId, region, offerId, since, until, ...pause }) => ({
    provider: providerId,
    region: region || null,
    offer: offerId || null,
    ...pause,
    since: toTime(since),
    until: toTime(until),
  }));
}

export const salesPausesView = defineView({
  name: 'listSalesPauses',
  tag: 'Views',
  path: '/sales-pauses',
  summary: 'Providers, regions and offers whose sales are paused now',
  description: 'What runs there goes on and is billed.',
  reply: ['The pauses.', z.object({ pauses: z.array(pauseSchema) })],
  read: async ({ store, clock }: ViewDeps) => ({ pauses: await listPauses(store.read, clock.now()) }),
  commands: [
    {
      name: 'sales ls',
      description: 'list what is paused now',
      list: {},
    },
  ],
  list: {
    rows: 'pauses',
    title: 'Paused sales',
    none: 'No sales are paused.',
    columns: [
      'provider',
      { field: 'region', text: ({ region }) => region ?? 'all' },
      { field: 'offer', text: ({ offer }) => offer ?? 'all, and volumes' },
      'reason',
      'since',
      { field: 'until', kind: 'moment', text: ({ until }) => until ?? 'it is resumed' },
      { field: 'by', isWide: true },
    ],
  },
});

const scopeFields = {
  provider: z.string(),
  region: z.string().min(1).optional().meta({ description: 'Absent: all regions.' }),
  offer: z.string().min(1).optional().meta({ description: 'Absent: all offers, and volumes.' }),
};
type ScopeFields = z.output<z.ZodObject<typeof scopeFields>>;

const toScope = ({ provider: providerId, region = '', offer: offerId = '' }: ScopeFields): SalesScope => ({
  providerId,
  region,
  offerId,
});

function namesOf({ providerId, region, offerId }: SalesScope): string {
  return [offerId, region, providerId].filter(Boolean).join(' in ');
}

const planSchema = z
  .object({
    provider: z.string(),
    region: z.string().nullable(),
    offer: z.string().nullable(),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'SalesPlan' });
type SalesPlan = z.output<typeof planSchema>;

function toPlan({ providerId, region, offerId }: SalesScope, effect: string, done: boolean): SalesPlan {
  return { provider: providerId, region: region || null, offer: offerId || null, effect, done };
}

const toText = ({ effect, done }: SalesPlan): string[] => [
  done ? `Done: ${effect}.` : `A dry run; with --yes, ${effect}.`,
];

const scopeArgs = { provider: ['<provider>'] } as const;
const scopeFlags = {
  region: ['--region <region>', 'only in this region'],
  offer: ['--offer <offer>', 'only this offer'],
} as const;

/** The offers in the scope. @throws {OperatorError} if the provider, or its last known catalog, has no such thing */
function offersIn(sellers: Providers, scope: SalesScope): CatalogOffer[] {
  const provider = sellers.get(scope.providerId);
  if (provider === undefined)
    throw new OperatorError(
      `There is no provider "${scope.providerId}": use one of ${sellers.ids().join(', ')}.`,
      'not_found',
    );
  const { offers, volumeLocations, refreshedAt } = provider.catalog;
  const found = [...offers.values()].filter(
    ({ offerId, regions }) =>
      (scope.offerId === '' || scope.offerId === offerId) &&
      (scope.region === '' || regions.includes(scope.region)),
  );
  const hasVolumes = scope.offerId === '' && volumeLocations.some(({ id }) => id === scope.region);
  if (found.length === 0 && !hasVolumes && refreshedAt !== null && scope.region + scope.offerId !== '')
    throw new OperatorError(
      `${scope.providerId} has no ${namesOf({ ...scope, providerId: '' })}.`,
      'not_found',
    );
  return found;
}

/** @throws {OperatorError} if the end is not in the future */
function toPauseEffect(sellers: Providers, scope: SalesScope, until: number | null, now: number): string {
  if (until !== null && until <= now) throw new OperatorError('The end of the pause must be in the future.');
  const count = offersIn(sellers, scope).filter(
    ({ inStockRegions }) =>
      inStockRegions.length > 0 && (scope.region === '' || inStockRegions.includes(scope.region)),
  ).length;
  const end = until === null ? 'until it is resumed' : `until ${toTime(until)}`;
  return (
    `nothing new of ${namesOf(scope)} is sold ${end}; ${counted(count, 'offer')} in stock ` +
    `${count === 1 ? 'is' : 'are'} not listed. What runs goes on and is billed`
  );
}

export const pauseSales = defineAction({
  name: 'pauseSales',
  tag: 'Actions',
  path: '/providers/{provider}/sales/pause',
  summary: 'Pause the sales of a provider, a region or an offer',
  description:
    'It is not listed, and orders and new volumes are 400 with the reason. What runs goes on, can be started and is billed. A second pause of the same replaces the first.',
  input: {
    ...scopeFields,
    until: timestampSchema.optional().meta({ description: 'Absent: until it is resumed.' }),
    reason: reasonField,
  },
  example: { region: 'us-phoenix', reason: 'maintenance of the network', until: '2030-01-01T00:00:00Z' },
  errors: ['not_found'],
  reply: ['The effect.', planSchema],
  audit: ({ provider, region, offer, until, reason }) => ({
    action: 'sales.pause',
    subject: provider,
    detail: { region, offer, until, reason },
  }),
  dryRun: async ({ sellers, clock }: OrderDeps, { until, ...scope }) =>
    toPlan(toScope(scope), toPauseEffect(sellers, toScope(scope), toEnd(until), clock.now()), false),
  run: async ({ store, clock, sellers }: OrderDeps, { until, reason, ...given }, { name: by }) => {
    const scope = toScope(given);
    const since = clock.now();
    const effect = toPauseEffect(sellers, scope, toEnd(until), since);
    const pause: SalesPause = { ...scope, reason: requireReason(reason), since, until: toEnd(until), by };
    await store.transact((tx) => tx.pauses.put(pause));
    return toPlan(scope, effect, true);
  },
  commands: [
    {
      name: 'sales pause',
      description: 'sell nothing new of a provider, a region or an offer; what runs goes on',
      args: scopeArgs,
      flags: {
        ...scopeFlags,
        until: ['--until <when>', 'in 30m, 2h or 7d, or at an RFC 3339 time; default: until it is resumed'],
        reason: ['--reason <text>', 'why; the users read it'],
      },
      toText,
    },
  ],
  form: {
    title: (input) => `Pause the sales of ${namesOf(toScope(input))}`,
    button: 'Pause sales',
    isDangerous: true,
    reason: 'the users read it',
    beside: 'listSalesPauses',
    page: () => '/console/sales-pauses',
  },
});

function toEnd(until: string | undefined): number | null {
  return until === undefined ? null : Date.parse(until);
}

/** @throws {OperatorError} if it is not paused */
async function findPause(read: Pick<Reader, 'pauses'>, scope: SalesScope, now: number): Promise<SalesPause> {
  const found = (await pausesNow(read, now)).find(
    ({ providerId, region, offerId }) =>
      providerId === scope.providerId && region === scope.region && offerId === scope.offerId,
  );
  if (found !== undefined) return found;
  throw new OperatorError(
    `The sales of ${namesOf(scope)} are not paused: see \`berth marketplace sales ls\`.`,
    'not_found',
  );
}

/** What the end of a pause does; other pauses may still cover all of the same, or a part. */
async function toResumeEffect(read: Pick<Reader, 'pauses'>, scope: SalesScope, now: number): Promise<string> {
  const own = await findPause(read, scope, now);
  const meets = (one: string, other: string) => one === '' || other === '' || one === other;
  const others = (await pausesNow(read, now)).filter(
    ({ providerId, region, offerId }) =>
      providerId === own.providerId &&
      (region !== own.region || offerId !== own.offerId) &&
      meets(region, own.region) &&
      meets(offerId, own.offerId),
  );
  const rest = others.length === 0 ? '' : `, except by the pause of ${others.map(namesOf).join(' and of ')}`;
  return `${namesOf(scope)} is sold again${rest}`;
}

export const resumeSales = defineAction({
  name: 'resumeSales',
  tag: 'Actions',
  path: '/providers/{provider}/sales/resume',
  summary: 'End a pause of sales',
  description: 'Of exactly this scope. No mail about stock is sent.',
  input: scopeFields,
  example: { region: 'us-phoenix' },
  errors: ['not_found'],
  reply: ['The effect.', planSchema],
  audit: ({ provider, region, offer }) => ({
    action: 'sales.resume',
    subject: provider,
    detail: { region, offer },
  }),
  dryRun: async ({ store, clock }: OrderDeps, given) =>
    toPlan(toScope(given), await toResumeEffect(store.read, toScope(given), clock.now()), false),
  run: ({ store, clock }: OrderDeps, given) =>
    store.transact(async (tx) => {
      const scope = toScope(given);
      const effect = await toResumeEffect(tx, scope, clock.now());
      await tx.pauses.remove(scope);
      return toPlan(scope, effect, true);
    }),
  commands: [
    {
      name: 'sales resume',
      description: 'end a pause',
      args: scopeArgs,
      flags: scopeFlags,
      toText,
    },
  ],
  form: {
    title: (input) => `Resume the sales of ${namesOf(toScope(input))}`,
    button: 'Resume',
    inRows: {
      of: 'listSalesPauses',
      fields: ({ provider, region, offer }: Pause) => ({ provider, region, offer }),
    },
    page: () => '/console/sales-pauses',
  },
});
