import { z } from 'zod';
import { isLoopback } from '../contract/loopback.ts';

const PORT = 'expected a whole number from 0 to 65535';

const portSchema = z.int(PORT).min(0, PORT).max(65_535, PORT);
const hostSchema = z.string().min(1).max(255).default('127.0.0.1');

const hostNameSchema = z
  .string()
  .max(255)
  .regex(
    /^[\w-]+(\.[\w-]+)*\.?$/,
    'expected a name without scheme, port and wildcard, such as berth.example.com',
  );

/** PEM files. */
const tlsSchema = z.strictObject({ cert: z.string().min(1), key: z.string().min(1) });

/** The schema of a server's address. `port` is the default port. */
export function serverSchema(port: number) {
  return z.strictObject({
    host: hostSchema,
    /** 0 takes any free port. */
    port: portSchema.default(port),
    /** Without them Berth speaks plain HTTP, and a proxy must terminate TLS. */
    tls: tlsSchema.optional(),
    /**
     * Number of proxies before this server, each of which appends to X-Forwarded-For. With 0, the header is not read.
     */
    trusted_proxies: z.int().min(0).max(16).default(0),
    /**
     * Maximum connections of one address; 0 for no limit. Loopback and proxies have none. The minimum still allows a
     * client to poll 2,500 instances every 10 s, with a new connection of one second for each poll.
     */
    connections_per_address: z
      .int()
      .max(1_000_000)
      .refine((count) => count === 0 || count >= 256, 'expected 0, for any number, or at least 256')
      .default(1024),
    /** How long requests and work may finish after SIGTERM. */
    drain_s: z.number().nonnegative().max(3600).default(20),
    /** Listener of /metrics and the operator's API. Clients of the API must not reach it. */
    admin: z
      .strictObject({
        host: hostSchema,
        /** Default: the product's own port, or any free port if `server.port` is 0. */
        port: portSchema.optional(),
        /** Host names accepted by the console and the operator's API, besides addresses, localhost and `host`. */
        hosts: z.array(hostNameSchema).max(64).default([]),
        /** Required beyond loopback: operators send their keys here. */
        tls: tlsSchema.optional(),
      })
      .refine(({ host, tls }) => tls !== undefined || isLoopback(host), {
        path: ['host'],
        error:
          'expected TLS, since other machines can reach this address and operators send their keys to it: set server.admin.tls, or listen on 127.0.0.1 and forward the port',
      })
      .prefault({}),
  });
}

const SQLITE_PREFIX = 'sqlite:';
const POSTGRES = /^postgres(ql)?:\/\//;

/** Messages never repeat the address: it may contain a password. */
export const databaseSchema = z
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
  );

/** Whether no part of a password can be mistaken for the host or the name: no `#`, and an `@` only before the host. */
function isUnambiguous(url: string): boolean {
  const [authority = '', rest = ''] = url.replace(POSTGRES, '').split(/([/?#].*)/s);
  return authority.split('@').length <= 2 && !/[@#]/.test(rest);
}

/** Copies of a SQLite file that a server makes by itself. PostgreSQL's own tools do this for PostgreSQL. */
export const backupsSchema = z
  .strictObject({
    /** Of this product alone: old copies in it are deleted. */
    folder: z.string().min(1),
    every_hours: z.int().min(1).max(168).default(24),
    /** The newest copies that stay. */
    keep: z.int().min(1).max(1000).default(14),
  })
  .optional();
export type Backups = NonNullable<z.infer<typeof backupsSchema>>;

/** Refuses `backups` for a database that this product does not copy. */
export function refuseBackupsOfPostgres(
  { backups, database }: { backups?: Backups | undefined; database: string },
  context: z.RefinementCtx,
): void {
  if (backups === undefined || !isPostgres(database)) return;
  const message =
    'expected no backups here, since the database is PostgreSQL: schedule `pg_dump` or what your host offers';
  context.addIssue({ code: 'custom', path: ['backups'], message, params: { at: 'key' } });
}

export const logLevelSchema = z
  .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
  .default('info');

/** Whether a database is PostgreSQL, which several servers may share. */
export function isPostgres(database: string): boolean {
  return POSTGRES.test(database);
}

/** The file of a `sqlite:PATH` database. */
export function sqlitePath(database: string): string {
  return database.slice(SQLITE_PREFIX.length);
}

/** The `sqlite:PATH` of a file. */
export function toDatabase(path: string): string {
  return `${SQLITE_PREFIX}${path}`;
}
