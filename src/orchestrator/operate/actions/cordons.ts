import { type AuditedAction, audited } from '../../../operators/audit.ts';
import type { Actor } from '../../../operators/model.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { type CordonRecord, type CordonSubject, stands } from '../../model/cordon.ts';
import type { Store, Transaction } from '../../model/store.ts';
import { ActionRefused } from './refused.ts';

/** The subjects that can be cordoned. */
export interface Cordonable {
  catalog: Catalog;
  /** By name. `placesOnHosts`: whether single hosts of the platform can be cordoned. */
  platforms: ReadonlyMap<string, { placesOnHosts: boolean }>;
}

export interface CordonDeps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  random: Random;
  sold: Cordonable;
}

/** The subject of a request. `platform` may be omitted if only one is possible. */
export type NamedSubject = Pick<CordonSubject, 'kind' | 'name'> & { platform?: string | undefined };

export interface CordonRequest {
  subject: NamedSubject;
  /** Null: until it is removed. */
  until: number | null;
  reason: string | null;
}

/**
 * Stops new placements on the subject. If the subject is already cordoned, that cordon is replaced with the given end
 * and reason; if neither is given, it stays as it is.
 */
export async function cordon(
  { store, clock, random, sold }: CordonDeps,
  actor: Actor,
  { subject, until, reason }: CordonRequest,
): Promise<CordonRecord> {
  const given = { ...(until !== null && { until: toTime(until) }), ...(reason !== null && { reason }) };
  return audited({ store, clock }, actor, actionOn('cordon.add', subject, given), (inside) =>
    inside.transact(async (tx) => {
      const now = clock.now();
      const named = nameSubject(sold, subject);
      assertToCome(until, now);
      const before = (await tx.cordons.list()).filter((one) => !one.isMaintenance && isOn(one, named));
      const [first] = before;
      if (first !== undefined && until === null && reason === null) return first;
      for (const { id } of before) await tx.cordons.remove(id);
      const since = Math.min(now, ...before.map((one) => one.since));
      const isMaintenance = false;
      return insert(tx, random, { ...named, since, until, isMaintenance, reason, by: actor.name });
    }),
  );
}

/** Ends the cordons on the subject, and maintenance that is in force. Cordons on other subjects still apply. */
export async function uncordon(
  { store, clock, sold }: Omit<CordonDeps, 'random'>,
  actor: Actor,
  subject: NamedSubject,
): Promise<CordonRecord[]> {
  return audited({ store, clock }, actor, actionOn('cordon.remove', subject), (inside) =>
    inside.transact(async (tx) => {
      const named = nameSubject(sold, subject);
      const now = clock.now();
      const standing = (await tx.cordons.list()).filter((one) => stands(one, now) && isOn(one, named));
      if (standing.length === 0)
        throw new ActionRefused(`No cordon on ${describe(named)}: see \`berth cordons\`.`, 'not_found');
      for (const { id } of standing) await tx.cordons.remove(id);
      return standing;
    }),
  );
}

export interface MaintenanceRequest extends CordonRequest {
  since: number;
}

/** Plans a window without new placements. The catalog announces it to clients from now on. */
export async function planMaintenance(
  { store, clock, random, sold }: CordonDeps,
  actor: Actor,
  { subject, since, until, reason }: MaintenanceRequest,
): Promise<CordonRecord> {
  const times = { since: toTime(since), ...(until !== null && { until: toTime(until) }) };
  const given = { ...times, ...(reason !== null && { reason }) };
  return audited({ store, clock }, actor, actionOn('maintenance.plan', subject, given), (inside) =>
    inside.transact(async (tx) => {
      const named = nameSubject(sold, subject);
      assertToCome(until, Math.max(clock.now(), since));
      return insert(tx, random, { ...named, since, until, isMaintenance: true, reason, by: actor.name });
    }),
  );
}

/** Ends a window of maintenance, or cancels a future one. */
export async function cancelMaintenance(
  { store, clock }: Pick<CordonDeps, 'store' | 'clock'>,
  actor: Actor,
  id: string,
): Promise<CordonRecord> {
  return audited({ store, clock }, actor, { action: 'maintenance.cancel', subject: id }, (inside) =>
    inside.transact(async (tx) => {
      const found = (await tx.cordons.list()).find((one) => one.id === id && one.isMaintenance);
      if (found === undefined)
        throw new ActionRefused(`There is no maintenance ${id}: see \`berth maintenance ls\`.`, 'not_found');
      await tx.cordons.remove(id);
      return found;
    }),
  );
}

/** @throws {ActionRefused} if there is no such subject */
export function nameSubject(
  { catalog, platforms }: Cordonable,
  { kind, name, platform }: NamedSubject,
): CordonSubject {
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

function platformOfHost(platforms: Cordonable['platforms'], given: string | undefined): string {
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

/** @throws {ActionRefused} */
function assertToCome(until: number | null, after: number): void {
  if (until !== null && until <= after)
    throw new ActionRefused(`The end ${toTime(until)} is before the start: give a later end.`);
}

/**
 * Whether the cordon has exactly this subject. A region on all platforms and the region on one platform are different
 * subjects.
 */
function isOn(cordon: CordonSubject, { kind, name, platform }: CordonSubject): boolean {
  return cordon.kind === kind && cordon.name === name && cordon.platform === platform;
}

function actionOn(
  action: string,
  { kind, name, platform }: NamedSubject,
  given: Record<string, unknown> = {},
): AuditedAction {
  return {
    action,
    subject: `${kind} ${name}`,
    detail: { ...(platform !== undefined && { platform }), ...given },
  };
}

/** A text such as `host kvm-1 of fra`. */
export function describe({ kind, name, platform }: CordonSubject): string {
  const isNamed = kind !== 'platform' && platform !== null;
  return `${kind} ${name}${isNamed ? ` of ${platform}` : ''}`;
}

const toTime = (ms: number): string => new Date(ms).toISOString();
