import { z } from 'zod';
import type { DriverDefinition } from '../drivers/kit/driver-definition.ts';
import { drivers } from '../drivers/registry.ts';
import { alarmKinds } from '../orchestrator/model/alarm.ts';
import { alarmsSchema, routeProblems, smtpSchema } from './alarms-schema.ts';
import {
  backupsSchema,
  databaseSchema,
  logLevelSchema,
  refuseBackupsOfPostgres,
  serverSchema,
} from './server-schema.ts';

/**
 * Requests of each account, except polls of one instance, which have a fixed limit. O: Limits: never below one poll per
 * active instance per 10 seconds plus catalog refreshes: the lower bounds ensure that. False for no limit at all.
 */
const rateLimitsSchema = z
  .union([
    z.literal(false),
    z.strictObject({
      /** Ten times as many at once. */
      requests_per_second: z.number().min(1).max(1_000_000).default(50),
      /** POST /instances and POST /volumes; they also count as requests. Twenty times as many at once. */
      creates_per_second: z.number().min(0.05).max(1_000_000).default(5),
    }),
  ])
  .prefault({});

/** Limits of each account. Without a number, there is no limit. */
const quotasSchema = z
  .strictObject({
    /** Instances that are not destroyed. */
    instances: z.int().min(0).max(10_000_000).optional(),
    volumes: z.int().min(0).max(10_000_000).optional(),
    /** Total size of all its volumes. */
    storage_gb: z.number().min(0).max(1_000_000_000).optional(),
  })
  .prefault({});

/** How long ended resources and records are kept. */
const retentionSchema = z
  .strictObject({
    /** Rows of destroyed instances and deleted volumes. They are kept longer than an Idempotency-Key. */
    tombstones_days: z.int().min(2).max(3650).default(30),
    /** The history of each instance, as `berth instances events` shows it. */
    history_days: z.int().min(1).max(3650).default(30),
    /** The actions of operators, as `berth audit ls` shows them, and alarms that ended. */
    audit_days: z.int().min(1).max(3650).default(365),
    /**
     * How long the machine of an instance in ERROR and its unit of capacity are kept for the operator. Default: the
     * remains of a failed create are removed at once, and a machine that failed later is kept until its instance is
     * deleted.
     */
    failed_machines_minutes: z.int().min(0).max(1440).optional(),
    /** How long the disks of an instance whose machine the platform has lost are kept after its DELETE. */
    lost_disks_hours: z.int().min(0).max(720).default(24),
  })
  .prefault({});

type Drivers = readonly [DriverDefinition, ...DriverDefinition[]];

/** The options of the driver that `driver` names. Default: the first driver. */
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

/** The platforms of one orchestrator. Their names appear in rows and metrics, never in an answer of the API. */
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

/** The schema of `berth.yaml` with these drivers. Every key has a default. An unknown key is an error. */
export function configSchemaFor<const Registered extends Drivers>(registered: Registered) {
  const platform = platformSchema(registered);
  const file = z.strictObject({
    server: serverSchema(8080).prefault({}),
    database: databaseSchema.default('sqlite:./.berth/berth.db'),
    /** File of the catalog; by default the bundled one. */
    catalog: z.string().min(1).optional(),
    /** The only platform. */
    platform: platform.optional(),
    /** Several platforms by name, instead of `platform`. */
    platforms: platformsSchema(platform).optional(),
    rate_limits: rateLimitsSchema,
    quotas: quotasSchema,
    retention: retentionSchema,
    backups: backupsSchema,
    /** The mail server for alarms. */
    mail: smtpSchema.optional(),
    alarms: alarmsSchema(alarmKinds, 'platforms'),
    log_level: logLevelSchema,
  });
  return file
    .superRefine(refuseBackupsOfPostgres)
    .superRefine(({ platform: one, platforms, alarms, mail }, context) => {
      for (const problem of routeProblems(alarms, mail)) context.addIssue({ code: 'custom', ...problem });
      if (one === undefined || platforms === undefined) return;
      const message = 'expected either platform or platforms: move the platform under platforms';
      context.addIssue({ code: 'custom', path: ['platforms'], message, params: { at: 'key' } });
    })
    .transform((given) =>
      given.platforms === undefined ? { ...given, platform: given.platform ?? platform.parse({}) } : given,
    );
}

/** The schema with the bundled drivers. */
export const configSchema = configSchemaFor(drivers);

/** The content of a config file, before paths are resolved. */
export type ConfigFile = z.infer<typeof configSchema>;

/** The resolved configuration: `catalog`, the TLS files, the folder of backups and the path in `database`, if any, are absolute. */
export type Config = ConfigFile & { catalog: string };
