import { z } from 'zod';
import { simulatorConfigSchema } from '../drivers/simulator/options.ts';

const secondsSchema = z
  .number()
  .positive()
  .max(7 * 24 * 3600);

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

const PORT = 'expected a whole number from 0 to 65535';

const serverSchema = z
  .strictObject({
    host: z.string().min(1).max(255).default('127.0.0.1'),
    /** 0: any free one. */
    port: z.int(PORT).min(0, PORT).max(65_535, PORT).default(8080),
    /** PEM files. Without them Berth speaks plain HTTP, and a proxy in front must terminate TLS. */
    tls: z.strictObject({ cert: z.string().min(1), key: z.string().min(1) }).optional(),
  })
  .prefault({});

const SQLITE_PREFIX = 'sqlite:';
const POSTGRES = /^postgres(ql)?:\/\//;

/** No message repeats the address: it may hold a password. */
const databaseSchema = z
  .string()
  .refine((url) => !POSTGRES.test(url) || isUnambiguous(url), {
    abort: true,
    error:
      'expected postgres://USER:PASSWORD@HOST/NAME with the special characters of the password percent-encoded, such as %40 for @, %23 for # and %2F for /',
  })
  .refine(
    (url) =>
      POSTGRES.test(url)
        ? URL.canParse(url)
        : url.startsWith(SQLITE_PREFIX) && url.length > SQLITE_PREFIX.length && !url.includes(':memory:'),
    {
      abort: true,
      error:
        'expected sqlite:PATH, where PATH is a file, such as sqlite:./.berth/berth.db, or postgres://USER:PASSWORD@HOST/NAME',
    },
  )
  .refine(
    (url) => !POSTGRES.test(url) || new URL(url).pathname.length > 1,
    'expected the name of a database at the end, as in postgres://USER:PASSWORD@HOST/NAME',
  )
  .default('sqlite:./.berth/berth.db');

/** Whether no part of a password can be taken for the host or the name: an `@` only before the host, and no `#`. */
function isUnambiguous(url: string): boolean {
  const [authority = '', rest = ''] = url.replace(POSTGRES, '').split(/([/?#].*)/s);
  return authority.split('@').length <= 2 && !/[@#]/.test(rest);
}

const limitsSchema = z
  .strictObject({
    /** A larger request body is 413. */
    max_body_bytes: z
      .int()
      .min(1024)
      .max(64 * 1024 * 1024)
      .default(1024 * 1024),
    /** A request that has not arrived in full by then is 408. */
    request_timeout_s: secondsSchema.default(30),
    /** How long SIGTERM lets requests finish. */
    drain_s: z.number().nonnegative().max(3600).default(20),
  })
  .prefault({});

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
    /** More instances than this are not ended for what the platform lost, until an operator has looked. */
    max_losses: z
      .strictObject({
        /** Of the instances that there were. */
        share: z.number().min(0).max(1).default(0.2),
        /** However few there were. */
        least: z.int().min(1).max(1_000_000).default(5),
        window_s: secondsSchema.default(600),
      })
      .prefault({}),
  })
  .prefault({});

/** `berth.yaml`. Every key has a default; an unknown key is an error. */
export const configSchema = z.strictObject({
  server: serverSchema,
  database: databaseSchema,
  /** Undefined: the catalog that comes with Berth. */
  catalog: z.string().min(1).optional(),
  platform: simulatorConfigSchema.prefault({}),
  limits: limitsSchema,
  rate_limits: rateLimitsSchema,
  reconcile: reconcileSchema,
  auth: z
    .strictObject({
      token_ttl_s: z
        .int()
        .min(60)
        .max(30 * 24 * 3600)
        .default(3600),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    })
    .prefault({}),
});

/** What a config file says, before paths are resolved. */
export type ConfigFile = z.infer<typeof configSchema>;

/** What Berth runs with: `catalog`, the TLS files and the path in `database`, where it has one, are absolute. */
export type Config = ConfigFile & { catalog: string };

/** Whether a database is a PostgreSQL, which several servers may share. */
export function isPostgres(database: string): boolean {
  return POSTGRES.test(database);
}

/** The file of a `sqlite:PATH` database. */
export function sqlitePath(database: string): string {
  return database.slice(SQLITE_PREFIX.length);
}

/** The other way round. */
export function toDatabase(path: string): string {
  return `${SQLITE_PREFIX}${path}`;
}
