import { z } from 'zod';
import type { DriverDefinition } from '../drivers/kit/driver-definition.ts';
import { drivers } from '../drivers/registry.ts';
import { databaseSchema, limitsSchema, logSchema, secondsSchema, serverSchema } from './server-schema.ts';

/** A token bucket: `burst` requests at once, refilled at `per_second`. */
function bucketSchema(
  defaults: { per_second: number; burst: number },
  least: { per_second: number; burst: number },
) {
  return z
    .strictObject({
      per_second: z.number().min(least.per_second).max(1_000_000).default(defaults.per_second),
      burst: z.int().min(least.burst).max(1_000_000).default(defaults.burst),
    })
    .prefault({});
}

/**
 * O: Limits: never below one poll per active instance per 10 seconds plus catalog refreshes, which is
 * what the lower bounds hold. A poll counts against its instance's bucket only.
 */
const rateLimitsSchema = z
  .strictObject({
    enabled: z.boolean().default(true),
    /** GET of one instance. */
    polls_per_instance: bucketSchema({ per_second: 10, burst: 200 }, { per_second: 0.1, burst: 2 }),
    /** Everything else that an account asks for. */
    requests_per_account: bucketSchema({ per_second: 50, burst: 500 }, { per_second: 1, burst: 10 }),
    /** POST /instances and POST /volumes, on top of the bucket above. */
    creates_per_account: bucketSchema({ per_second: 5, burst: 100 }, { per_second: 0.01, burst: 1 }),
    /** Tokens that POST /auth/token gives out; a failed login counts nowhere, its answer is held back. */
    tokens_per_account: bucketSchema({ per_second: 1, burst: 100 }, { per_second: 0.01, burst: 1 }),
  })
  .prefault({});

const reconcileSchema = z
  .strictObject({
    /** How often the platform's listing is held against the instances. */
    watch_interval_s: secondsSchema.default(5),
    /** The longest pause between two SSH proofs of an instance that is not ONLINE yet. */
    ssh_probe_interval_s: secondsSchema.default(2),
    /** How long a claim on a piece of work lasts; after a crash it is free again by then. */
    lease_s: z.number().min(1).max(3600).default(30),
    /** What becomes of a machine with our tag that no instance owns. */
    orphans: z.enum(['log', 'stop', 'reap']).default('log'),
    /** A younger machine is never taken for an orphan. */
    orphan_grace_s: secondsSchema.default(600),
    /** A listing that lacks more than this share of the machines that it should have is not believed. */
    suspect_share: z.number().min(0.01).max(1).default(0.5),
    /** For so long a platform must have shown none of what it should have until that is accepted. */
    accept_empty_after_s: z.int().min(0).max(86_400).default(600),
    /** For so long after a start an unknown id is answered 503 until each platform has given a complete listing. */
    restore_doubt_s: z.int().min(0).max(86_400).default(600),
    /** More instances than this are not ended for what the platform lost, until an operator has looked. */
    max_losses: z
      .strictObject({
        /** Of the instances that there were. */
        share: z.number().min(0).max(1).default(0.2),
        /** However few there were. */
        least: z.int().min(1).max(1_000_000).default(5),
        window_s: secondsSchema.default(600),
        /** The same of the instances of one host, where the platform tells its hosts apart. */
        per_host: z
          .strictObject({
            share: z.number().min(0).max(1).default(0.5),
            least: z.int().min(1).max(1_000_000).default(3),
          })
          .prefault({}),
      })
      .prefault({}),
  })
  .prefault({});

/** What each account may have at most; where a number is left out, as much as there is. */
const quotasSchema = z
  .strictObject({
    /** Those that are not destroyed. */
    instances: z.int().min(0).max(10_000_000).optional(),
    volumes: z.int().min(0).max(10_000_000).optional(),
    /** Of all its volumes together. */
    storage_gb: z.number().min(0).max(1_000_000_000).optional(),
    /** Tokens of POST /auth/token that have not expired. */
    live_tokens: z.int().min(1).max(10_000_000).default(10_000),
  })
  .prefault({});

/** For how long what has ended is kept. */
const retentionSchema = z
  .strictObject({
    /** Of destroyed instances and deleted volumes; longer than an Idempotency-Key. */
    tombstones_days: z.int().min(2).max(3650).default(30),
    /** What happened to each instance, which `berth instances events` shows. */
    history_days: z.int().min(1).max(3650).default(30),
    /** What operators did, which `berth audit ls` shows. */
    audit_days: z.int().min(1).max(3650).default(365),
  })
  .prefault({});

/** What is done with the machine of an instance that went to ERROR. */
const failedInstancesSchema = z
  .strictObject({
    /**
     * For so long it is kept for the operator, its unit of capacity with it; then it is removed. Left out: what a failed create
     * made is removed at once, and a machine that failed later is kept until its instance is deleted.
     */
    hold_minutes: z.int().min(0).max(1440).optional(),
  })
  .prefault({});

/** What is done about an instance whose machine the platform no longer has. */
const lossesSchema = z
  .strictObject({
    /** For so long its unit of capacity is not sold, in case the machine turns up again. */
    hold_claims_minutes: z.int().min(0).max(10_080).default(60),
    /** For so long the disks of an instance that ended by itself are kept after its DELETE. */
    keep_disks_hours: z.int().min(0).max(720).default(24),
  })
  .prefault({});

type Drivers = readonly [DriverDefinition, ...DriverDefinition[]];

/** The options of the driver that `driver` names; without it those of the first one. */
function platformSchema<const Registered extends Drivers>(registered: Registered) {
  type Schema = Registered[number]['configSchema'];
  const [{ name: usual }] = registered;
  const schemas = registered.map(({ configSchema }) => configSchema) as unknown as [Schema, ...Schema[]];
  const names = registered.map(({ name }) => JSON.stringify(name));
  const expected = `expected ${names.length === 1 ? '' : 'one of '}${names.join(', ')}`;
  return z.preprocess(
    (options) => (isPlain(options) && !('driver' in options) ? { ...options, driver: usual } : options),
    z.discriminatedUnion('driver', schemas, {
      error: ({ code }) => (code === 'invalid_union' ? expected : undefined),
    }),
  );
}

/** Platforms of one orchestrator. Their names stand in rows and metrics, and never in an answer of the API. */
function platformsSchema<Platform extends z.ZodType>(platform: Platform) {
  const name = z
    .string()
    .regex(
      /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/,
      'expected up to 32 of a-z, 0-9 and "-", such as "kvm-east"',
    );
  return z
    .record(name, platform)
    .refine((platforms) => Object.keys(platforms).length > 0, 'expected at least one platform');
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `berth.yaml` with these drivers to choose from. Every key has a default; an unknown key is an error. */
export function configSchemaFor<const Registered extends Drivers>(registered: Registered) {
  const platform = platformSchema(registered);
  const file = z.strictObject({
    server: serverSchema(8080).prefault({}),
    database: databaseSchema.default('sqlite:./.berth/berth.db'),
    /** Undefined: the catalog that comes with Berth. */
    catalog: z.string().min(1).optional(),
    /** Of the only platform. */
    platform: platform.optional(),
    /** Of several, by name, in place of `platform`. */
    platforms: platformsSchema(platform).optional(),
    limits: limitsSchema,
    rate_limits: rateLimitsSchema,
    quotas: quotasSchema,
    reconcile: reconcileSchema,
    losses: lossesSchema,
    failed_instances: failedInstancesSchema,
    retention: retentionSchema,
    auth: z
      .strictObject({
        token_ttl_s: z
          .int()
          .min(60)
          .max(30 * 24 * 3600)
          .default(3600),
      })
      .prefault({}),
    log: logSchema,
  });
  return file
    .superRefine(({ platform: one, platforms }, context) => {
      if (one === undefined || platforms === undefined) return;
      const message = 'expected either platform or platforms: name the one under platforms too';
      context.addIssue({ code: 'custom', path: ['platforms'], message, params: { at: 'key' } });
    })
    .transform((given) =>
      given.platforms === undefined ? { ...given, platform: given.platform ?? platform.parse({}) } : given,
    );
}

/** With the drivers that come with Berth. */
export const configSchema = configSchemaFor(drivers);

/** What a config file says, before paths are resolved. */
export type ConfigFile = z.infer<typeof configSchema>;

/** What Berth runs with: `catalog`, the TLS files and the path in `database`, where it has one, are absolute. */
export type Config = ConfigFile & { catalog: string };
