import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import type { AuditedAction } from '../../../operator-kit/audit.ts';
import { completeId } from '../../../operator-kit/complete-id.ts';
import { defineAction, defineView } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import {
  type CordonRecord,
  type CordonSubject,
  cordonKinds,
  isActive,
  isOver,
  isSame,
} from '../../model/cordon.ts';
import type { Reader, Store, Transaction } from '../../model/store.ts';
import type { PlatformDetail } from '../views/platform.ts';
import type { PlatformFacts } from '../views/platforms.ts';
import { ActionRefused } from './refused.ts';

/** A cordon in the operator API. */
export const cordonRowSchema = z
  .object({
    id: z.string(),
    kind: z.enum(cordonKinds),
    name: z.string(),
    platform: z.string().nullable().meta({ description: 'Null: on each platform.' }),
    since: timestampSchema,
    until: timeOrNullSchema.meta({ description: 'Null: until removed.' }),
    active: z.boolean().meta({ description: 'Whether it is in force now; maintenance may start later.' }),
    maintenance: z
      .boolean()
      .meta({ description: 'Whether it is maintenance that clients see in the catalog.' }),
    by: z.string(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'Cordon' });
export type CordonRow = z.infer<typeof cordonRowSchema>;

const cordonListSchema = z.object({ cordons: z.array(cordonRowSchema) }).meta({ id: 'CordonList' });

export interface CordonDeps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  random: Random;
  catalog: Catalog;
  /** Platforms by name. */
  platforms: ReadonlyMap<string, Pick<PlatformFacts, 'placesOnHosts'>>;
}

type Subjects = Pick<CordonDeps, 'catalog' | 'platforms'>;

/** Current and future cordons, ordered by start. */
async function listCordons({ cordons }: Pick<Reader, 'cordons'>, now: number): Promise<CordonRow[]> {
  const all = await cordons.list();
  return all.filter((cordon) => !isOver(cordon, now)).map((one) => toCordonRow(one, now));
}

export const cordonsView = defineView({
  name: 'listCordons',
  tag: 'Actions',
  path: '/cordons',
  summary: 'Cordons and planned maintenance',
  description: 'Ordered by start time.',
  reply: ['The cordons.', cordonListSchema],
  commands: [
    {
      name: 'cordons ls',
      description: 'list cordons and planned maintenance',
      list: {},
    },
    {
      name: 'maintenance ls',
      description: 'list planned and current maintenance',
      list: {
        none: 'No maintenance is planned.',
        rows: ({ cordons }) => cordons.filter(({ maintenance }) => maintenance),
      },
    },
  ],
  list: {
    rows: 'cordons',
    title: 'Cordons and maintenance',
    about:
      'nothing new is placed there; running instances are not affected; clients see maintenance, not cordons',
    none: 'Nothing is cordoned.',
    columns: [
      { field: 'id', kind: 'id' },
      {
        field: 'maintenance',
        title: 'what',
        text: ({ maintenance }) => (maintenance ? 'maintenance' : 'cordon'),
        tone: ({ maintenance }) => (maintenance ? 'busy' : 'wait'),
      },
      'kind',
      'name',
      'platform',
      'since',
      { field: 'until', kind: 'moment' },
      'by',
      'reason',
    ],
  },
  read: async ({ store, clock }: Pick<CordonDeps, 'store' | 'clock'>) => ({
    cordons: await listCordons(store.read, clock.now()),
  }),
});

const subjectFields = {
  kind: z.enum(cordonKinds),
  name: z.string().min(1),
  platform: z.string().optional().meta({ description: 'The platform it applies to, if there are several.' }),
};
export const cordonFields = {
  ...subjectFields,
  until: timestampSchema.optional().meta({ description: 'Absent: until removed.' }),
  reason: z.string().max(500).optional(),
};
export const subjectArgs = { kind: ['<kind>', 'what'], name: ['<name>', 'its name'] } as const;
const platformFlag = { platform: ['--platform <name>', 'which platform, if there are several'] } as const;
export const cordonFlags = {
  ...platformFlag,
  reason: ['--reason <text>', 'why; clients see the reason of maintenance'],
  until: ['--until <time>', 'when it ends: 30m, 2h or 7d from now, or a time; default: when it is removed'],
} as const;
type Subject = z.output<z.ZodObject<typeof subjectFields>>;
export const cordonExample = { kind: 'region', name: 'eu-frankfurt', reason: 'new switches' } as const;

/** Stops new placements on the subject. Any other cordon on it is replaced, unless neither end nor reason is given. */
export const cordon = defineAction({
  name: 'cordon',
  tag: 'Actions',
  path: '/cordons',
  summary: 'Cordon: place nothing new there',
  description: 'Running instances are not affected. An existing cordon gets the new end and reason.',
  input: cordonFields,
  example: cordonExample,
  reply: ['The cordon.', cordonRowSchema],
  commands: [
    {
      name: 'cordon',
      args: subjectArgs,
      flags: cordonFlags,
      toText: (set) => [
        `Nothing new is placed on ${describe(set)} until ${endOf(set)}; running instances stay.`,
      ],
    },
  ],
  form: {
    title: ({ kind, name }) => `Cordon ${kind} ${name}`,
    button: 'Cordon it',
    page: () => PAGE,
    beside: 'listCordons',
    inRows: {
      of: 'showPlatform',
      fields: ({ platform: name }: PlatformDetail) => ({ kind: 'platform', name }),
    },
    preview: (_reply, deps: CordonDeps, input) => previewOf(deps, input),
  },
  audit: (input) => auditOf('cordon.add', input),
  run: (
    { store, clock, random, ...subjects }: CordonDeps,
    { until: end, reason = null, ...subject },
    { name: by },
  ) =>
    store.transact(async (tx) => {
      const now = clock.now();
      const named = nameSubject(subjects, subject);
      const until = toEnd(end, now);
      const before = (await tx.cordons.list()).filter(
        (one) => !one.isMaintenance && one.refusals === null && isSame(one, named),
      );
      const [first] = before;
      if (first !== undefined && until === null && reason === null) return toCordonRow(first, clock.now());
      for (const { id } of before) await tx.cordons.remove(id);
      const since = Math.min(now, ...before.map((one) => one.since));
      const record = { ...named, since, until, isMaintenance: false, reason, by, refusals: null };
      return toCordonRow(await insert(tx, random, record), clock.now());
    }),
});

/**
 * Ends the cordons on the subject, also Berth's, and maintenance that is in force. Cordons on other subjects still
 * apply.
 */
export const uncordon = defineAction({
  name: 'uncordon',
  tag: 'Actions',
  path: '/cordons/remove',
  summary: 'Remove a cordon',
  description: 'Maintenance in force on the same subject ends too.',
  input: subjectFields,
  example: { kind: cordonExample.kind, name: cordonExample.name },
  reply: ['The removed cordons.', cordonListSchema],
  audit: (input) => auditOf('cordon.remove', input),
  run: ({ store, clock, ...subjects }: Omit<CordonDeps, 'random'>, subject) =>
    store.transact(async (tx) => {
      const named = nameSubject(subjects, subject);
      const now = clock.now();
      const found = (await tx.cordons.list()).filter((one) =>
        one.refusals === null
          ? isActive(one, now) && isSame(one, named)
          : !isOver(one, now) && isSame(one, { ...named, platform: named.platform ?? one.platform }),
      );
      if (found.length === 0)
        throw new ActionRefused(`No cordon on ${describe(named)}: see \`berth cordons\`.`, 'not_found');
      for (const { id } of found) await tx.cordons.remove(id);
      return { cordons: found.map((one) => toCordonRow(one, clock.now())) };
    }),
  commands: [
    {
      name: 'uncordon',
      args: subjectArgs,
      flags: platformFlag,
      toData: ({ cordons }) => cordons,
      toText: (_reply, { kind, name }) => [
        `${kind} ${name} takes new instances again while it has free units.`,
      ],
    },
  ],
  form: {
    title: () => 'Remove a cordon',
    button: 'Remove cordon',
    page: () => PAGE,
    inRows: {
      of: 'listCordons',
      fields: ({ kind, name, platform, maintenance }: CordonRow) =>
        maintenance ? undefined : { kind, name, platform: kind === 'platform' ? null : platform },
    },
  },
});

/** Plans a window without new placements. The catalog announces it to clients from now on. */
export const planMaintenance = defineAction({
  name: 'planMaintenance',
  tag: 'Actions',
  path: '/maintenance',
  summary: 'Announce maintenance in the catalog',
  description: 'Clients see it and its reason at once; during the window nothing new is placed there.',
  input: { ...cordonFields, from: timestampSchema.optional().meta({ description: 'Absent: now.' }) },
  example: { ...cordonExample, from: '2030-01-31T22:00:00Z', until: '2030-02-01T02:00:00Z' },
  reply: ['The window.', cordonRowSchema],
  commands: [
    {
      name: 'maintenance plan',
      description: 'announce maintenance; nothing new is placed there during it',
      args: subjectArgs,
      flags: {
        ...cordonFlags,
        from: [
          '--from <time>',
          'when it begins: 30m, 2h or 7d from now, or a time; default: now',
          { mayBePast: true },
        ],
      },
      toText: (planned) => [
        `${planned.id}: maintenance of ${describe(planned)} from ${planned.since} until ${endOf(planned)}. Clients see it in extras.berth.maintenance_windows; nothing new is placed there during it, and running instances stay.`,
      ],
    },
  ],
  form: {
    title: ({ kind, name }) => `Maintenance of ${kind} ${name}`,
    button: 'Announce it',
    page: () => PAGE,
    beside: 'listCordons',
    preview: async (_reply, deps: CordonDeps, input) => [
      ...(await previewOf(deps, input)),
      'Clients see it in the catalog as maintenance, with the reason.',
    ],
  },
  audit: (input, { clock }: CordonDeps) => {
    const row = auditOf('maintenance.plan', input);
    return { ...row, detail: { since: toTime(toStart(input.from, clock.now())), ...row.detail } };
  },
  run: (
    { store, clock, random, ...subjects }: CordonDeps,
    { from, until: end, reason = null, ...subject },
    { name: by },
  ) =>
    store.transact(async (tx) => {
      const named = nameSubject(subjects, subject);
      const now = clock.now();
      const since = toStart(from, now);
      const until = toEnd(end, Math.max(now, since));
      const record = { ...named, since, until, isMaintenance: true, reason, by, refusals: null };
      return toCordonRow(await insert(tx, random, record), clock.now());
    }),
});

/** Ends a window of maintenance, or cancels a future one. */
export const cancelMaintenance = defineAction({
  name: 'cancelMaintenance',
  tag: 'Actions',
  path: '/maintenance/{maintenanceId}/cancel',
  summary: 'End or cancel maintenance',
  description: 'The offers that it withheld are sold again.',
  input: { maintenanceId: z.string() },
  errors: ['not_found'],
  reply: ['The window that ended.', cordonRowSchema],
  commands: [
    {
      name: 'maintenance cancel',
      description: 'end a maintenance window, or cancel a planned one',
      args: { maintenanceId: ['<id>'] },
      toText: (ended) => [`The maintenance of ${describe(ended)} has ended or is cancelled.`],
    },
  ],
  form: {
    title: () => 'Cancel maintenance',
    button: 'Cancel',
    page: () => PAGE,
    inRows: {
      of: 'listCordons',
      fields: ({ id, maintenance }: CordonRow) => (maintenance ? { maintenanceId: id } : undefined),
    },
  },
  resolve: async ({ store: { read } }: Pick<CordonDeps, 'store' | 'clock'>, { maintenanceId }) => ({
    maintenanceId: completeId(
      (await read.cordons.list()).map(({ id }) => id),
      maintenanceId,
    ),
  }),
  audit: ({ maintenanceId }) => ({ action: 'maintenance.cancel', subject: maintenanceId }),
  run: ({ store, clock }: Pick<CordonDeps, 'store' | 'clock'>, { maintenanceId: id }) =>
    store.transact(async (tx) => {
      const found = (await tx.cordons.list()).find((one) => one.id === id && one.isMaintenance);
      if (found === undefined)
        throw new ActionRefused(`There is no maintenance ${id}: see \`berth maintenance ls\`.`, 'not_found');
      await tx.cordons.remove(id);
      return toCordonRow(found, clock.now());
    }),
});

/** @throws {ActionRefused} if there is no such subject */
function nameSubject({ catalog, platforms }: Subjects, { kind, name, platform }: Subject): CordonSubject {
  if (platform !== undefined && !platforms.has(platform)) throw noneCalled('platform', platform, platforms);
  switch (kind) {
    case 'region':
      if (!catalog.regions.has(name)) throw noneCalled('region', name, catalog.regions);
      return { kind, name, platform: platform ?? null };
    case 'offer':
      if (!catalog.offers.has(name)) throw noneCalled('offer', name, catalog.offers);
      return { kind, name, platform: platform ?? null };
    case 'platform':
      if (!platforms.has(name)) throw noneCalled('platform', name, platforms);
      return { kind, name, platform: name };
    case 'host':
      return { kind, name, platform: platformOfHost(platforms, platform) };
  }
}

function platformOfHost(platforms: Subjects['platforms'], given: string | undefined): string {
  const able = [...platforms].flatMap(([name, { placesOnHosts }]) => (placesOnHosts ? [name] : []));
  const [only] = able;
  if (given !== undefined && !able.includes(given))
    throw new ActionRefused(
      `The driver of the platform ${given} does not choose hosts by name: cordon the region, an offer or the platform.`,
    );
  if (given === undefined && able.length > 1)
    throw new ActionRefused(`Name the platform of the host: --platform ${able.join(' or ')}.`);
  if (only === undefined)
    throw new ActionRefused(
      'No configured driver chooses hosts by name: cordon the region, an offer or the platform.',
    );
  return given ?? only;
}

function noneCalled(what: string, name: string, known: ReadonlyMap<string, unknown>): ActionRefused {
  return new ActionRefused(
    `There is no ${what} ${name}: give one of ${[...known.keys()].join(', ')}.`,
    'not_found',
  );
}

async function insert(
  tx: Transaction,
  random: Random,
  cordon: Omit<CordonRecord, 'id'>,
): Promise<CordonRecord> {
  const record = { ...cordon, id: `cordon-${random.bytes(6).toString('hex')}` };
  await tx.cordons.insert(record);
  return record;
}

function toStart(from: string | undefined, now: number): number {
  return from === undefined ? now : Date.parse(from);
}

/** @throws {ActionRefused} if it ends before `after` */
function toEnd(until: string | undefined, after: number): number | null {
  if (until === undefined) return null;
  const at = Date.parse(until);
  if (at <= after) throw new ActionRefused(`The end ${toTime(at)} is before the start: give a later end.`);
  return at;
}

function auditOf(
  action: string,
  {
    kind,
    name,
    platform,
    until,
    reason,
  }: Subject & { until?: string | undefined; reason?: string | undefined },
): AuditedAction {
  const end = until && toTime(Date.parse(until));
  return { action, subject: `${kind} ${name}`, detail: { platform, until: end, reason } };
}

/** A text such as `host kvm-1 of fra`. */
export function describe({ kind, name, platform }: CordonSubject): string {
  const isNamed = kind !== 'platform' && platform !== null;
  return `${kind} ${name}${isNamed ? ` of ${platform}` : ''}`;
}

export function endOf({ until, maintenance }: CordonRow): string {
  return until ?? (maintenance ? 'it is cancelled' : 'the cordon is removed');
}

const PAGE = '/console/cordons';
async function previewOf(
  { store: { read }, clock, ...subjects }: CordonDeps,
  input: Subject & { until?: string | undefined },
) {
  toEnd(input.until, clock.now());
  const subject = nameSubject(subjects, input);
  const { kind, name, platform } = subject;
  const running = await read.instances.countFound({
    ...(kind === 'offer' ? { offerId: name } : { [kind]: name }),
    platform: platform ?? undefined,
  });
  return [
    `No new machine is placed on ${describe(subject)} from now on, until ${input.until ?? 'the cordon is removed'}.`,
    running === 0
      ? 'No instances are running there.'
      : `${running} instances are running there and are not affected.`,
  ];
}

function toCordonRow({ isMaintenance, ...cordon }: CordonRecord, now: number): CordonRow {
  return {
    id: cordon.id,
    kind: cordon.kind,
    name: cordon.name,
    platform: cordon.platform,
    since: toTime(cordon.since),
    until: toTime(cordon.until),
    active: isActive({ ...cordon, isMaintenance }, now),
    maintenance: isMaintenance,
    by: cordon.by,
    reason: cordon.reason,
  };
}
