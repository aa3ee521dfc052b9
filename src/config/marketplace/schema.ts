import { z } from 'zod';
import { parseBaseUrl } from '../../client/base-url.ts';
import { alarmKinds } from '../../marketplace/model/alarm.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { alarmsSchema, routeProblems, smtpSchema, variableSchema } from '../alarms-schema.ts';
import {
  backupsSchema,
  databaseSchema,
  logLevelSchema,
  refuseBackupsOfPostgres,
  serverSchema,
} from '../server-schema.ts';
import { bundledProfileFile, bundledProfileIds } from './load-profile.ts';

const text = z.string().min(1).max(1000);

const markupShape = {
  /** Percentage of the provider's price, with at most two decimals. */
  percent: z.number().nonnegative().max(1000).multipleOf(0.01).optional(),
  /** An amount for each running hour, with at most six decimals. */
  usd_per_hour: z.number().nonnegative().max(100_000).optional(),
};

const ONE_MARKUP = 'expected one of percent and usd_per_hour';

/** The markup for all offers of a provider, and different ones for some of them. */
const markupsSchema = z
  .strictObject({
    ...markupShape,
    offers: z
      .record(
        z.string().min(1),
        z
          .strictObject(markupShape)
          .refine(
            ({ percent, usd_per_hour }) => (percent === undefined) !== (usd_per_hour === undefined),
            ONE_MARKUP,
          ),
      )
      .default({}),
  })
  .refine(({ percent, usd_per_hour }) => percent === undefined || usd_per_hour === undefined, ONE_MARKUP);
export type MarkupEntry = z.infer<typeof markupsSchema>;

const providerSchema = z
  .strictObject({
    /** The id that users see. */
    id: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "provider-a"'),
    /** Base URL with the version, such as https://gpu.example/v1. Required unless the provider is retired. */
    base_url: text.or(z.literal('')).default(''),
    /** Source of the provider's key, unless it has a username. */
    api_key_env: variableSchema.optional(),
    /** Whether the key is exchanged for short-lived tokens. */
    exchange: z.boolean().default(false),
    /** The login, instead of a key. It is exchanged for short-lived tokens. */
    username: text.optional(),
    password_env: variableSchema.optional(),
    /** Amount added to the provider's prices; by default nothing. */
    markup: markupsSchema.optional(),
    /** File of a custom profile; by default the bundled profile of `fixtures/providers` with the same id. */
    profile: text.optional(),
    /** Whether `base_url` may be plain http and resolve to a private address. */
    allow_private: z.boolean().default(false),
    /** Whether a machine must pass the SSH proof before it is sold as running. */
    verify_ssh: z.boolean().default(true),
    /** Whether the provider was given up: it is not called, and what is left at it ends without being billed on. */
    retired: z.boolean().default(false),
  })
  .superRefine((provider, context) => {
    if (provider.retired) return;
    if (provider.base_url === '')
      context.addIssue({ code: 'custom', path: ['base_url'], message: 'missing' });
    for (const problem of credentialProblems(provider)) context.addIssue({ code: 'custom', ...problem });
  });
export type ProviderEntry = z.infer<typeof providerSchema>;

function credentialProblems({
  api_key_env: key,
  username,
  password_env: password,
}: Partial<Record<'api_key_env' | 'username' | 'password_env', string | undefined>>): {
  path: string[];
  message: string;
}[] {
  if (username === undefined && password !== undefined)
    return [{ path: ['username'], message: 'missing: a password needs a username' }];
  if (username !== undefined && key !== undefined)
    return [{ path: ['username'], message: 'expected a key or a username, not both' }];
  if (username !== undefined && password === undefined)
    return [{ path: ['username'], message: 'expected password_env with it' }];
  if (username === undefined && key === undefined) return [{ path: [], message: 'expected api_key_env' }];
  return [];
}

const { spending, mailsKeptMs, auditKeptMs } = defaultOptions;
const { zeroBalance } = defaultOptions.billing;

const minutesSchema = z.number().nonnegative().max(527_040);
const hoursSchema = z.number().max(8784);
const daysSchema = z.number().max(3650);

const billingSchema = z
  .strictObject({
    /** Minimum runtime of a deployment before it can be terminated, for users without an individual one. */
    minimum_runtime_minutes: minutesSchema.default(defaultOptions.minimumRuntimeMinutes),
    /**
     * How many hours the balance must cover before anything is added. For a deployment, it is the minimum runtime if
     * that is longer.
     */
    required_hours: hoursSchema.min(1).default(spending.balanceForMs / 3_600_000),
    /** The discount of a team by its spending in the last 30 days. */
    volume_discounts: z
      .array(
        z.strictObject({
          spend_usd: z.number().positive().max(1_000_000_000),
          /** M: Offer: "5 to 50 percent". */
          percentage: z.int().min(5).max(50),
        }),
      )
      .max(100)
      .default([]),
    /** Time from a zero balance until running deployments end. */
    grace_minutes: minutesSchema.default(zeroBalance.graceMs / 60_000),
    /** Time from a zero balance until stopped deployments end. */
    stopped_grace_hours: hoursSchema.nonnegative().default(zeroBalance.stoppedGraceMs / 3_600_000),
    /** Time from the first notice by mail of a zero balance until volumes are deleted. */
    volumes_kept_days: daysSchema.min(1).default(zeroBalance.volumes.keepMs / DAY_MS),
  })
  .prefault({});

const mostSchema = z.int().min(0).max(1_000_000_000).nullable();

/** Maximum that one team may have at the same time. Null for no limit. */
const teamLimitsSchema = z
  .strictObject({
    /** Deployments that have not ended. */
    deployments: mostSchema.default(spending.teamLimits.deployments),
    volumes: mostSchema.default(spending.teamLimits.volumes),
    /** Total size of all its volumes. */
    volume_gb: mostSchema.default(spending.teamLimits.volumeGb),
  })
  .prefault({});

/** How long ended records are kept. Null for forever. */
const retentionSchema = z
  .strictObject({
    /** Mails that were sent or given up. Sending is retried for three days. */
    mails_days: z
      .number()
      .min(7)
      .max(36_500)
      .nullable()
      .default(mailsKeptMs === null ? null : mailsKeptMs / DAY_MS),
    /** The actions of operators, and alarms that ended. */
    audit_days: z
      .int()
      .min(1)
      .max(3650)
      .default(auditKeptMs / DAY_MS),
  })
  .prefault({});

const originSchema = z
  .string()
  .refine(
    (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && new URL(text).origin === text,
    'expected an origin in lower case, without a path, such as https://app.example.com; there is no wildcard',
  );

/** `marketplace.yaml`. Every key except a provider's own has a default. An unknown key is an error. */
export const marketplaceConfigSchema = z
  .strictObject({
    server: serverSchema(8100).prefault({}),
    /** Origins of web pages that may call the API. By default none: browsers then refuse its answers to pages. */
    cors_origins: z.array(originSchema).max(64).default([]),
    database: databaseSchema.default('sqlite:./.berth/marketplace.db'),
    providers: z.array(providerSchema).max(1000).default([]),
    billing: billingSchema,
    team_limits: teamLimitsSchema,
    retention: retentionSchema,
    backups: backupsSchema,
    /** If absent, mails are stored and not sent. */
    mail: smtpSchema.optional(),
    alarms: alarmsSchema(alarmKinds, 'providers'),
    /** Whether the limits of M: apply. Without them, another server must limit requests. */
    rate_limits: z.boolean().default(true),
    log_level: logLevelSchema,
  })
  .superRefine(refuseBackupsOfPostgres)
  .superRefine(({ providers, alarms, mail }, context) => {
    for (const problem of routeProblems(alarms, mail)) context.addIssue({ code: 'custom', ...problem });
    for (const [index, { id, base_url, profile, allow_private, retired }] of providers.entries()) {
      const issue = (key: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['providers', index, key], message });
      if (providers.findIndex((other) => other.id === id) !== index) issue('id', `duplicate id ${id}`);
      if (retired || base_url === '') continue;
      const problem = baseUrlProblem(base_url, allow_private);
      if (problem !== undefined) issue('base_url', problem);
      if (profile === undefined && bundledProfileFile(id) === undefined)
        issue(
          'id',
          `Berth has no bundled profile for it: give a profile file in \`profile\` (bundled: ${bundledProfileIds().join(', ')})`,
        );
    }
  });

function baseUrlProblem(url: string, allowPrivate: boolean): string | undefined {
  try {
    parseBaseUrl(url, { allowPrivate });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The resolved configuration of `berth marketplace`: every path is absolute. */
export type MarketplaceConfig = z.infer<typeof marketplaceConfigSchema>;
