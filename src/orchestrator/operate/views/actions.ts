import { z } from 'zod';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { timeOrNullSchema, toTime } from '../../../operators/views/values.ts';
import { type CordonRecord, cordonKinds, isActive, isOver } from '../../model/cordon.ts';
import type { Reader } from '../../model/store.ts';
import type { ClosingPlan } from '../actions/close-account.ts';
import type { Drained } from '../actions/drain.ts';
import type { Plan } from '../actions/instances.ts';
import type { PlatformLosses, Thaw } from '../actions/losses.ts';
import type { Reloaded } from '../actions/reload.ts';

/** A cordon in the operator API. */
export const cordonRowSchema = z
  .object({
    id: z.string(),
    kind: z.enum(cordonKinds),
    name: z.string(),
    platform: z.string().nullable().meta({ description: 'Null: on each platform.' }),
    since: timestampSchema,
    until: timeOrNullSchema.meta({ description: 'Null: until removed.' }),
    stands: z.boolean().meta({ description: 'Whether it is in force now; maintenance may start later.' }),
    maintenance: z
      .boolean()
      .meta({ description: 'Whether it is maintenance that clients see in the catalog.' }),
    by: z.string(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'Cordon' });
export type CordonRow = z.infer<typeof cordonRowSchema>;

export const cordonListSchema = z.object({ cordons: z.array(cordonRowSchema) }).meta({ id: 'CordonList' });

/** Current and future cordons, ordered by start. */
export async function listCordons({ cordons }: Pick<Reader, 'cordons'>, now: number): Promise<CordonRow[]> {
  const all = await cordons.list();
  return all.filter((cordon) => !isOver(cordon, now)).map((one) => toCordonRow(one, now));
}

export function toCordonRow(cordon: CordonRecord, now: number): CordonRow {
  return {
    id: cordon.id,
    kind: cordon.kind,
    name: cordon.name,
    platform: cordon.platform,
    since: toTime(cordon.since),
    until: toTime(cordon.until),
    stands: isActive(cordon, now),
    maintenance: cordon.isMaintenance,
    by: cordon.by,
    reason: cordon.reason,
  };
}

export const drainedSchema = z
  .object({
    cordon: cordonRowSchema,
    empty: z.boolean().meta({ description: 'No machine is left there.' }),
    by_status: z.partialRecord(instanceStatusSchema, z.int()),
    instances: z.array(
      z.object({
        id: z.string(),
        status: instanceStatusSchema,
        account: z.string(),
        offer: z.string(),
        region: z.string(),
        host: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'Drained', description: 'What remains on a drained subject; if many, the oldest.' });

export function toDrainedRow(
  { cordon, isEmpty, byStatus, instances }: Drained,
  now: number,
): z.infer<typeof drainedSchema> {
  return {
    cordon: toCordonRow(cordon, now),
    empty: isEmpty,
    by_status: byStatus,
    instances: instances.map(({ accountId, offerId, ...rest }) => ({
      ...rest,
      account: accountId,
      offer: offerId,
    })),
  };
}

export const planSchema = z
  .object({
    instance: z.string(),
    account: z.string(),
    status: instanceStatusSchema,
    step: z
      .object({
        kind: z.string(),
        attempt: z.int(),
        next_try_at: timestampSchema,
        last_problem: z.string().nullable(),
        held: z.boolean(),
      })
      .nullable()
      .meta({ description: 'Its open step; null: none.' }),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'InstancePlan' });

export function toPlanRow({ step, isDone, ...plan }: Plan): z.infer<typeof planSchema> {
  return {
    ...plan,
    step: step && {
      kind: step.kind,
      attempt: step.attempt,
      next_try_at: toTime(step.notBefore),
      last_problem: step.lastError,
      held: step.isHeld,
    },
    done: isDone,
  };
}

export const closingSchema = z
  .object({
    account: z.string(),
    id: z.string(),
    instances: z.int().meta({ description: 'Instances deleted with it.' }),
    volumes: z.int().meta({ description: 'Volumes deleted with it, once its instances are gone.' }),
    deleted: z.boolean().meta({ description: 'Whether its row is gone.' }),
    effect: z.string().meta({ description: 'The effect, in a sentence.' }),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'AccountClosing' });

export function toClosingRow({ isDeleted, isDone, ...plan }: ClosingPlan): z.infer<typeof closingSchema> {
  return { ...plan, deleted: isDeleted, done: isDone };
}

export const orphanPlanSchema = z
  .object({
    ref: z.string(),
    platform: z.string().nullable(),
    problem: z.string(),
    effect: z.string(),
    done: z.boolean().meta({ description: 'False: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'OrphanPlan' });

export const thawSchema = z
  .object({
    platform: z.string(),
    problems: z.array(z.string()),
    effect: z.string(),
    accepted_until: timeOrNullSchema.meta({ description: 'Null: a dry run; nothing has changed.' }),
  })
  .meta({ id: 'Thaw' });

export function toThawRow({ acceptedUntil, ...thaw }: Thaw): z.infer<typeof thawSchema> {
  return { ...thaw, accepted_until: toTime(acceptedUntil) };
}

export const lossesSchema = z
  .object({
    window_s: z.number(),
    platforms: z.array(
      z.object({
        platform: z.string(),
        lost: z.int(),
        allowed: z.int(),
        accepted_until: timeOrNullSchema,
        platform_down_since: timeOrNullSchema,
        volumes_doubted_since: timeOrNullSchema,
        held: z.array(z.object({ id: z.string(), status: instanceStatusSchema, region: z.string() })),
      }),
    ),
  })
  .meta({ id: 'Losses' });

export function toLossesRow(
  all: readonly PlatformLosses[],
  { windowMs }: { windowMs: number },
): z.infer<typeof lossesSchema> {
  return {
    window_s: windowMs / 1000,
    platforms: all.map((one) => ({
      platform: one.platform,
      lost: one.count,
      allowed: one.cap,
      accepted_until: toTime(one.acceptedUntil),
      platform_down_since: toTime(one.frozenSince),
      volumes_doubted_since: toTime(one.volumesDoubtedSince),
      held: one.held.map(({ id, status, region }) => ({ id, status, region })),
    })),
  };
}

export const reloadedSchema = z
  .object({
    catalog: z.string().meta({ description: 'The file that was read.' }),
    added: z.array(z.string()),
    removed: z.array(z.string()),
    changed: z.array(z.string()),
    needs_restart: z
      .array(z.string())
      .meta({ description: 'Changed configuration keys that take effect only after a restart.' }),
  })
  .meta({ id: 'Reloaded' });

export function toReloadedRow({ needsRestart, ...reloaded }: Reloaded): z.infer<typeof reloadedSchema> {
  return { ...reloaded, needs_restart: needsRestart };
}
