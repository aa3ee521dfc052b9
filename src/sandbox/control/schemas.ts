import { z } from '@hono/zod-openapi';
import type { ArmedView } from '../faults/arming.ts';
import { faultNames } from '../faults/catalog/catalog.ts';
import { assertionResultSchema, assertionSchema } from '../journal/assertions.ts';
import { journalEntrySchema } from '../journal/entry.ts';
import { durationSchema, sandboxSchema } from '../state/scenario-format.ts';
import { snapshotSchema } from '../state/snapshots.ts';

/** The schema of an object, under its name in the API's document. */
const named = <S extends z.ZodRawShape>(id: string, shape: S) => z.object(shape).meta({ id });

const accessSchema = z.object({ base_url: z.string(), api_key: z.string() });

export const newAccountSchema = named('NewAccount', { name: z.string().min(1).max(63).optional() });
export const accountSchema = named('Account', {
  name: z.string(),
  providers: z.record(z.string(), accessSchema).meta({ description: 'By name.' }),
  marketplace: accessSchema
    .extend({ email: z.string(), user_id: z.string(), team_id: z.string() })
    .optional()
    .meta({ description: 'Absent without a marketplace.' }),
});
export const infoSchema = named('Sandbox', {
  seed: z.string(),
  account: accountSchema.meta({ description: 'The account that exists from the start.' }),
  ca: z.string().optional().meta({
    description:
      'The certificate of the CA, in PEM, that clients must trust. Absent if the sandbox is not served over TLS.',
  }),
});

export const newSandboxSchema = sandboxSchema.meta({ id: 'NewSandbox' });
export const openedSchema = named('OpenedSandbox', {
  id: z.string(),
  control: accessSchema,
  ...infoSchema.shape,
});

export const mailsSchema = named('Mails', {
  mails: z.array(z.object({ at: z.iso.datetime(), to: z.string(), subject: z.string(), text: z.string() })),
});

export const clockSchema = named('Clock', {
  now: z.iso.datetime(),
  kind: z.enum(['virtual', 'real']),
  is_frozen: z.boolean(),
  timers: z.int().meta({ description: 'Number of timers set.' }),
});
export const advanceSchema = named('Advance', { by: durationSchema });

export const journalSchema = named('Journal', {
  count: z.int().meta({ description: 'Of all exchanges since the last reset, including dropped ones.' }),
  dropped: z.int().meta({ description: 'Number of the oldest exchanges that are no longer kept.' }),
  entries: z.array(journalEntrySchema),
});
export const assertionsSchema = named('Assertions', { assertions: z.array(assertionSchema).min(1) });
export const assertionResultsSchema = named('AssertionResults', {
  holds: z.boolean(),
  results: z.array(assertionResultSchema),
  dropped: z.int().meta({
    description: 'Number of the oldest exchanges that were not checked: they are no longer kept.',
  }),
});

export const newSnapshotSchema = named('NewSnapshot', { name: z.string().min(1).max(63).optional() });
export const snapshotListSchema = named('SnapshotList', { snapshots: z.array(snapshotSchema) });

const madeSchema = z.object({ provider: z.string(), account: z.string().optional(), id: z.string() });
export const playedSchema = named('Played', {
  made: z.record(z.string(), madeSchema).meta({ description: 'By the names given in its steps.' }),
});

const anyObject = z.record(z.string(), z.unknown());
export const armedSchema = named('ArmedFault', {
  id: z.string(),
  fault: z.enum(faultNames),
  options: anyObject.meta({ description: 'The options it was armed with.' }),
  seen: z.int().meta({ description: 'Number of occasions on which it could have triggered.' }),
  hits: z.int().meta({ description: 'How often it has triggered.' }),
  is_over: z.boolean().meta({ description: 'Whether it can no longer trigger.' }),
});
/** The view of an armed fault, as the API shows it. */
export function toArmed({ isOver, ...armed }: ArmedView) {
  return { ...armed, is_over: isOver };
}
export const endedSchema = named('EndedSandbox', {
  untriggered: z.array(armedSchema).meta({ description: 'Faults with `must_trigger` that never triggered.' }),
});
export const armedListSchema = named('ArmedFaults', { faults: z.array(armedSchema) });
export const faultKindsSchema = named('FaultKinds', {
  faults: z.array(
    z.object({
      fault: z.enum(faultNames),
      layer: z.string(),
      does: z.string(),
      rule: z.string().meta({ description: 'The rule of the contract or design that it tests.' }),
      settings: anyObject.meta({ description: 'Its own settings, as a JSON Schema.' }),
    }),
  ),
});
export const faultEventsSchema = named('FaultEvents', {
  events: z.array(
    z.object({
      at: z.iso.datetime(),
      fault: z.enum(faultNames),
      id: z.string().meta({ description: 'Of the armed fault.' }),
      step: z.string(),
      resource: z.string().optional(),
    }),
  ),
});

export const transitionsSchema = named('Transitions', {
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
});
export const finishSchema = z
  .strictObject({
    instance: z.string().optional(),
    volume: z.string().optional(),
  })
  .meta({ id: 'Finish' });
export const finishedSchema = named('Finished', {
  finished: z.int().meta({ description: 'Number of finished transitions.' }),
});

export const doneSchema = named('Done', { done: z.literal(true) });
