import { z } from '@hono/zod-openapi';
import { MAX_ADVANCE_MS } from '../clock.ts';
import { DURATION, EXPECTED_DURATION, toMilliseconds } from '../duration.ts';
import { anyArmingSchema } from '../faults/arming.ts';
import { transitionSchema } from '../transitions/transitions.ts';

/** A duration: milliseconds, or text such as `90s`, `1h30m` or `30d`. Parsed to milliseconds. */
export const durationSchema = z
  .union([z.number().nonnegative(), z.string().regex(DURATION, EXPECTED_DURATION).transform(toMilliseconds)])
  .refine((ms) => ms <= MAX_ADVANCE_MS, 'expected at most 100 years')
  .openapi('Duration', {
    type: ['number', 'string'],
    description: 'Milliseconds, or text such as `90s`, `1h30m` or `30d`.',
    example: '30d',
  });

const nameSchema = z.string().min(1).max(63);
const providerSchema = nameSchema.meta({
  description: 'A provider of the sandbox: `provider-a` or `a`. Default: the first.',
});
const labelSchema = nameSchema.meta({
  description: 'Name for later steps; if several are created, the first is `NAME-1`.',
});

const ifMade = z.boolean().optional();

const stepSchema = z.discriminatedUnion('do', [
  z.strictObject({
    do: z.literal('create_instance'),
    as: labelSchema,
    provider: providerSchema.optional(),
    account: nameSchema.optional().meta({ description: 'Default: the account of the sandbox.' }),
    configuration_id: z.string().optional().meta({ description: 'Default: the cheapest free one.' }),
    region: z.string().optional().meta({ description: 'Default: the first of the offer.' }),
    count: z.int().min(1).max(10_000).optional(),
    until: z
      .enum(['PROVISIONING', 'ONLINE', 'STOPPED', 'ERROR'])
      .optional()
      .meta({ description: 'The clock advances until it has this status. Default ONLINE.' }),
  }),
  z.strictObject({
    do: z.literal('create_volume'),
    as: labelSchema,
    provider: providerSchema.optional(),
    account: nameSchema.optional(),
    region: z.string().optional(),
    size_gb: z.number().positive().optional(),
    attach_to: z.array(nameSchema).optional().meta({ description: 'Instances of earlier steps.' }),
  }),
  z.strictObject({
    do: z.enum(['stop', 'start', 'destroy']),
    instance: nameSchema,
    wait: z
      .boolean()
      .optional()
      .meta({ description: 'Whether the clock advances until it is done. Default true.' }),
  }),
  // Needs a sandbox with `capacity: catalog`.
  z.strictObject({
    do: z.literal('sell_out'),
    provider: providerSchema.optional(),
    configuration_id: z.string(),
    region: z.string(),
    leave: z
      .int()
      .nonnegative()
      .optional()
      .meta({ description: 'Number of units that stay free. Default 0.' }),
  }),
  z.strictObject({
    do: z.literal('arm'),
    fault: anyArmingSchema.meta({
      description:
        'The body of `POST /control/faults`; `instance` and `volume` may be names from earlier steps.',
    }),
    if_made: ifMade.meta({
      description: 'Skip the step if no earlier step made the instance or volume. Default: an error.',
    }),
  }),
  z.strictObject({
    do: z.literal('transitions'),
    transitions: transitionSchema.meta({ description: 'The body of `POST /control/transitions`.' }),
  }),
  z.strictObject({ do: z.literal('advance'), by: durationSchema }),
  z.strictObject({ do: z.literal('advance_until_idle') }),
  z.strictObject({
    do: z.literal('request'),
    provider: providerSchema.optional(),
    account: nameSchema.optional(),
    method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    path: z.string().startsWith('/').meta({
      description:
        'A path on the server, such as /v1/instances or /operator/v1/cordons; `{NAME}` is the id from an earlier step.',
    }),
    body: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'A value `{NAME}` is the id from an earlier step.' }),
    if_made: ifMade.meta({
      description:
        'Skip the step if no earlier step made what the path or the body names. Default: an error.',
    }),
    as: labelSchema.optional().meta({ description: 'Name for the id in the answer.' }),
    status: z.int().optional().meta({ description: 'The expected status; default: any.' }),
  }),
]);
export type ScenarioStep = z.infer<typeof stepSchema>;

/** Options of a sandbox. */
export const sandboxSchema = z.strictObject({
  seed: z.union([z.int(), z.string()]).optional(),
  providers: z.array(z.string()).min(1).optional(),
  clock: z.enum(['virtual', 'real']).optional(),
  marketplace: z.boolean().optional(),
  capacity: z.enum(['unlimited', 'catalog']).optional(),
});

/** A scenario file: the sandbox's options, and the steps before a test begins. */
export const scenarioSchema = z
  .strictObject({
    name: nameSchema,
    description: z.string().optional(),
    sandbox: sandboxSchema.optional().meta({
      description: 'How `berth sandbox --scenario` starts the sandbox. Ignored by a running sandbox.',
    }),
    steps: z.array(stepSchema).optional(),
  })
  .meta({ id: 'Scenario' });
export type Scenario = z.infer<typeof scenarioSchema>;
export type ScenarioInput = z.input<typeof scenarioSchema>;
