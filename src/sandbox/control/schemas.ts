import { z } from '@hono/zod-openapi';
import type { ArmedView } from '../faults/arming.ts';
import { faultNames } from '../faults/catalog/catalog.ts';
import { assertionResultSchema, assertionSchema } from '../journal/assertions.ts';
import { journalEntrySchema } from '../journal/entry.ts';
import { durationSchema, sandboxSchema } from '../state/scenario-format.ts';
import { snapshotSchema } from '../state/snapshots.ts';

const accessSchema = z.object({ base_url: z.string(), api_key: z.string() });

export const newAccountSchema = z
  .object({ name: z.string().min(1).max(63).optional() })
  .meta({ id: 'NewAccount' });
export const accountSchema = z
  .object({
    name: z.string(),
    providers: z.record(z.string(), accessSchema).meta({ description: 'By name.' }),
    marketplace: accessSchema
      .extend({ email: z.string(), user_id: z.string(), team_id: z.string() })
      .optional()
      .meta({ description: 'Absent without a marketplace.' }),
  })
  .meta({ id: 'Account' });
export const infoSchema = z
  .object({
    seed: z.string(),
    account: accountSchema.meta({ description: 'The account that exists from the start.' }),
    ca: z.string().optional().meta({
      description:
        'The certificate of the CA, in PEM, that clients must trust. Absent if the sandbox is not served over TLS.',
    }),
  })
  .meta({ id: 'Sandbox' });

export const newSandboxSchema = sandboxSchema.meta({ id: 'NewSandbox' });
export const openedSchema = z
  .object({ id: z.string(), control: accessSchema, ...infoSchema.shape })
  .meta({ id: 'OpenedSandbox' });

export const mailsSchema = z
  .object({
    mails: z.array(z.object({ at: z.iso.datetime(), to: z.string(), subject: z.string(), text: z.string() })),
  })
  .meta({ id: 'Mails' });

export const clockSchema = z
  .object({
    now: z.iso.datetime(),
    kind: z.enum(['virtual', 'real']),
    is_frozen: z.boolean(),
    timers: z.int().meta({ description: 'Number of timers set.' }),
  })
  .meta({ id: 'Clock' });
export const advanceSchema = z.object({ by: durationSchema }).meta({ id: 'Advance' });

export const journalSchema = z
  .object({
    count: z.int().meta({ description: 'Of all exchanges since the last reset, including dropped ones.' }),
    dropped: z.int().meta({ description: 'Number of the oldest exchanges that are no longer kept.' }),
    entries: z.array(journalEntrySchema),
  })
  .meta({ id: 'Journal' });
export const assertionsSchema = z
  .object({ assertions: z.array(assertionSchema).min(1) })
  .meta({ id: 'Assertions' });
export const assertionResultsSchema = z
  .object({
    holds: z.boolean(),
    results: z.array(assertionResultSchema),
    dropped: z.int().meta({
      description: 'Number of the oldest exchanges that were not checked: they are no longer kept.',
    }),
  })
  .meta({ id: 'AssertionResults' });

export const newSnapshotSchema = z
  .object({ name: z.string().min(1).max(63).optional() })
  .meta({ id: 'NewSnapshot' });
export const snapshotListSchema = z
  .object({ snapshots: z.array(snapshotSchema) })
  .meta({ id: 'SnapshotList' });

const madeSchema = z.object({ provider: z.string(), account: z.string().optional(), id: z.string() });
export const playedSchema = z
  .object({
    made: z.record(z.string(), madeSchema).meta({ description: 'By the names given in its steps.' }),
  })
  .meta({ id: 'Played' });

const anyObject = z.record(z.string(), z.unknown());
export const dumpSchema = z
  .object({
    seed: z.string(),
    now: z.iso.datetime(),
    providers: z.record(
      z.string(),
      z.object({
        machines: z.array(anyObject).meta({ description: 'Machines of the platform, in its own format.' }),
        volumes: z.array(anyObject),
        attachments: z.array(anyObject),
        instances: z
          .array(anyObject)
          .meta({ description: 'Instances of all accounts, in the format of the contract.' }),
      }),
    ),
  })
  .meta({ id: 'Dump' });

export const armedSchema = z
  .object({
    id: z.string(),
    fault: z.enum(faultNames),
    options: anyObject.meta({ description: 'The options it was armed with.' }),
    seen: z.int().meta({ description: 'Number of occasions on which it could have struck.' }),
    hits: z.int().meta({ description: 'Number of strikes.' }),
    is_over: z.boolean().meta({ description: 'Whether it can no longer strike.' }),
  })
  .meta({ id: 'ArmedFault' });
/** The view of an armed fault, as the API shows it. */
export function toArmed({ isOver, ...armed }: ArmedView) {
  return { ...armed, is_over: isOver };
}
export const endedSchema = z
  .object({
    unstruck: z.array(armedSchema).meta({ description: 'Faults with `must_strike` that never struck.' }),
  })
  .meta({ id: 'EndedSandbox' });
export const armedListSchema = z.object({ faults: z.array(armedSchema) }).meta({ id: 'ArmedFaults' });
export const faultKindsSchema = z
  .object({
    faults: z.array(
      z.object({
        fault: z.enum(faultNames),
        layer: z.string(),
        does: z.string(),
        strikes: z.string().meta({ description: 'The rule of the contract or design that it tests.' }),
        settings: anyObject.meta({ description: 'Its own settings, as a JSON Schema.' }),
      }),
    ),
  })
  .meta({ id: 'FaultKinds' });
export const strikesSchema = z
  .object({
    strikes: z.array(
      z.object({
        at: z.iso.datetime(),
        fault: z.enum(faultNames),
        id: z.string().meta({ description: 'Of the armed fault.' }),
        step: z.string(),
        resource: z.string().optional(),
      }),
    ),
  })
  .meta({ id: 'Strikes' });

export const transitionsSchema = z
  .object({
    settings: z.array(anyObject).meta({ description: 'The first match applies.' }),
    held: z
      .array(
        z.object({
          provider: z.string(),
          instance: z.string().optional(),
          volume: z.string().optional(),
          phase: z.string(),
          polls_left: z.int().nullable().meta({ description: 'null: it waits for `finish`.' }),
        }),
      )
      .meta({ description: 'Transitions that wait for polls or for `finish`.' }),
  })
  .meta({ id: 'Transitions' });
export const finishSchema = z
  .strictObject({
    instance: z.string().optional(),
    volume: z.string().optional(),
  })
  .meta({ id: 'Finish' });
export const finishedSchema = z
  .object({ finished: z.int().meta({ description: 'Number of finished transitions.' }) })
  .meta({ id: 'Finished' });

export const doneSchema = z.object({ done: z.literal(true) }).meta({ id: 'Done' });
