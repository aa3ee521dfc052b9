import { z } from 'zod';
import { parseBaseUrl } from '../../client/base-url.ts';
import { defaultOptions, defaultRateLimits } from '../../marketplace/model/options.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { databaseSchema, limitsSchema, logSchema, secondsSchema, serverSchema } from '../server-schema.ts';
import { bundledProfileFile, bundledProfileIds } from './load-profile.ts';

const text = z.string().min(1).max(1000);

/** The name of an environment variable. */
const variableSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of an environment variable');

const markupShape = {
  /** Of the provider's price, with two decimals at most. */
  percent: z.number().nonnegative().max(1000).multipleOf(0.01).optional(),
  /** An amount per hour for what runs, with six decimals at most. */
  usd_per_hour: z.number().nonnegative().max(100_000).optional(),
};

const ONE_MARKUP = 'expected one of percent and usd_per_hour';

/** For all offers of a provider, and for some of them another one. */
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
    /** What users name it by. */
    id: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "provider-a"'),
    /** With the version, such as https://gpu.example/v1. */
    base_url: text,
    /** Where its key is: exactly one, unless it has a username. */
    api_key_env: variableSchema.optional(),
    api_key_file: text.optional(),
    /** Whether the key only buys short-lived tokens. */
    exchange: z.boolean().default(false),
    /** In place of a key: what buys short-lived tokens. */
    username: text.optional(),
    password_env: variableSchema.optional(),
    password_file: text.optional(),
    /** What is added to its prices; absent: nothing. */
    markup: markupsSchema.optional(),
    /** A profile of one's own; absent: that of `fixtures/providers` with the same id. */
    profile: text.optional(),
    /** Whether `base_url` may be plain http, and lead to a private address. */
    allow_private: z.boolean().default(false),
    /** As `verify_ssh` below; absent: what that says. */
    verify_ssh: z.boolean().optional(),
  })
  .superRefine((provider, context) => {
    for (const problem of credentialProblems(provider)) context.addIssue({ code: 'custom', ...problem });
  });
export type ProviderEntry = z.infer<typeof providerSchema>;

function credentialProblems(provider: {
  api_key_env?: string | undefined;
  api_key_file?: string | undefined;
  username?: string | undefined;
  password_env?: string | undefined;
  password_file?: string | undefined;
}): { path: string[]; message: string }[] {
  const { api_key_env, api_key_file, username, password_env, password_file } = provider;
  const keys = [api_key_env, api_key_file].filter((value) => value !== undefined).length;
  const passwords = [password_env, password_file].filter((value) => value !== undefined).length;
  if (username === undefined && passwords > 0)
    return [{ path: ['username'], message: 'missing: a password needs the username beside it' }];
  if (username !== undefined && keys > 0)
    return [{ path: ['username'], message: 'expected a key or a username, not both' }];
  if (username !== undefined && passwords !== 1)
    return [{ path: ['username'], message: 'expected one of password_env and password_file beside it' }];
  if (username === undefined && keys !== 1)
    return [{ path: [], message: 'expected one of api_key_env and api_key_file' }];
  return [];
}

const { polling, maxLosses, billing, spending, mailsKeptMs, auditKeptMs } = defaultOptions;

const rangeSchema = z
  .tuple([z.number().min(1), z.number().max(3600)])
  .refine(([min, max]) => min <= max, 'expected [min, max] with min <= max');

const pollingSchema = z
  .strictObject({
    /** Between two polls of an active deployment, drawn from [min, max]. */
    interval_s: rangeSchema.default([polling.intervalMs[0] / 1000, polling.intervalMs[1] / 1000]),
    /** A call to a provider that takes longer is a timeout. */
    call_timeout_s: z
      .number()
      .positive()
      .max(300)
      .default(polling.callTimeoutMs / 1000),
    /** Polls, launches, deletions at one provider at once, by all servers; as many changes for requests beside them. */
    concurrency: z.int().min(1).max(1000).default(polling.concurrency),
    /** How long a dedicated instance may read stopped or offline before that is believed. */
    blink_s: secondsSchema.default(polling.blinkMs / 1000),
    /** Between the first 404 and the look at the list that confirms it, at least. */
    gone_after_s: secondsSchema.default(polling.goneAfterMs / 1000),
    /** Between two comparisons of a provider's list with the deployments. */
    sweep_s: secondsSchema.default(polling.sweepMs / 1000),
    /** Between two looks at what a provider sells. */
    catalog_s: secondsSchema.default(polling.catalogMs / 1000),
    /** How long a lost create is looked for in the provider's list. */
    find_create_s: secondsSchema.default(polling.findCreateMs / 1000),
    /** After this a change that never showed is not waited for any more. */
    action_s: secondsSchema.default(polling.actionMs / 1000),
    /** How long a machine may take from ONLINE until it can be logged in to by SSH. */
    ssh_window_s: secondsSchema.default(polling.sshWindowMs / 1000),
    /** More than this does not end because a provider denies it, until an operator has looked. */
    max_losses: z
      .strictObject({
        /** Of what there was at the provider. */
        share: z.number().min(0).max(1).default(maxLosses.share),
        /** However little there was. */
        least: z.int().min(1).max(1_000_000).default(maxLosses.least),
        window_s: secondsSchema.default(maxLosses.windowMs / 1000),
      })
      .prefault({}),
    /** How long a request waits for its change at the provider; then it answers 504 if the change was sent, else 502. */
    lifecycle_wait_s: z
      .number()
      .positive()
      .max(300)
      .default(defaultOptions.lifecycleWaitMs / 1000),
  })
  .prefault({});

const billingSchema = z
  .strictObject({
    /** Slices end at multiples of it; null: once an hour for each deployment and volume, at a time of its own. */
    slice_s: z.int().min(1).max(3600).nullable().default(null),
    /** Slices become one line for each day and segment so long after; null: never. Volume discounts read 30 days. */
    roll_up_after_days: z.number().min(32).max(3650).nullable().default(35),
    /** The account minimum before a terminate. */
    minimum_runtime_minutes: z
      .number()
      .nonnegative()
      .max(527_040)
      .default(defaultOptions.minimumRuntimeMinutes),
    /** For so long a balance must last before anything is added; for a deployment its minimum runtime, if longer. */
    required_hours: z
      .number()
      .min(1)
      .max(8784)
      .default(spending.balanceForMs / 3_600_000),
    /** What a team that spent so much in the last 30 days gets. */
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
    /** What runs, or is stopped, ends so long after the balance has reached zero. */
    zero_balance: z
      .strictObject({
        grace_minutes: z
          .number()
          .nonnegative()
          .max(527_040)
          .default(billing.zeroBalance.graceMs / 60_000),
        stopped_grace_hours: z
          .number()
          .nonnegative()
          .max(8784)
          .default(billing.zeroBalance.stoppedGraceMs / 3_600_000),
        /** Volumes are deleted so long after the mail that told of it first. */
        volumes_kept_days: z
          .number()
          .min(1)
          .max(3650)
          .default(billing.zeroBalance.volumes.keepMs / DAY_MS),
        /** It is mailed again so long before. */
        volume_notice_days: z
          .array(z.number().positive().max(3650))
          .max(10)
          .default(billing.zeroBalance.volumes.noticesMs.map((ms) => ms / DAY_MS)),
      })
      .prefault({}),
  })
  .prefault({});

const mostSchema = z.int().min(0).max(1_000_000_000).nullable();

/** The most that one team may have at the same time; null: any number. */
const teamLimitsSchema = z
  .strictObject({
    /** Those that are not over. */
    deployments: mostSchema.default(spending.teamLimits.deployments),
    volumes: mostSchema.default(spending.teamLimits.volumes),
    /** Of all its volumes together. */
    volume_gb: mostSchema.default(spending.teamLimits.volumeGb),
  })
  .prefault({});

/** What is over is deleted so long after it was written; null: never. */
const retentionSchema = z
  .strictObject({
    /** Mails that were sent or given up. One is tried for three days. */
    mails_days: z
      .number()
      .min(7)
      .max(36_500)
      .nullable()
      .default(mailsKeptMs === null ? null : mailsKeptMs / DAY_MS),
    /** What operators did. */
    audit_days: z
      .int()
      .min(1)
      .max(3650)
      .default(auditKeptMs / DAY_MS),
  })
  .prefault({});

const smtpSchema = z
  .strictObject({
    host: text,
    port: z.int().min(1).max(65_535).default(587),
    /** TLS from the first byte, as on port 465; without it STARTTLS where the server offers it. */
    secure: z.boolean().default(false),
    user: text.optional(),
    password_env: variableSchema.optional(),
    password_file: text.optional(),
    /** Such as `Marketplace <no-reply@example.com>`. */
    from: text,
  })
  .refine(
    ({ user, password_env, password_file }) =>
      [password_env, password_file].filter((value) => value !== undefined).length ===
      (user === undefined ? 0 : 1),
    { path: ['user'], error: 'expected a user with one of password_env and password_file, or none of them' },
  );

const requestsSchema = z.int().min(1).max(1_000_000_000);

/** M: Limits. */
const rateLimitsSchema = z
  .strictObject({
    window_s: z
      .int()
      .min(1)
      .max(86_400)
      .default(defaultRateLimits.windowMs / 1000),
    /** GET /api/providers and GET /api/gpu-offers, for each address. */
    catalog_reads: requestsSchema.default(defaultRateLimits.catalogReads),
    /** Deployments but for creates, can-terminate, SSH keys, balance and teams, for each address. */
    account_requests: requestsSchema.default(defaultRateLimits.accountRequests),
    /** POST /api/deployments, for each user who has no number of their own. */
    creates_per_user: requestsSchema.default(defaultRateLimits.creates),
    /** Everything else, for each address. */
    other_requests: requestsSchema.default(defaultRateLimits.otherRequests),
  })
  .prefault({});

/** `marketplace.yaml`. Every key but a provider's own has a default; an unknown key is an error. */
export const marketplaceConfigSchema = z
  .strictObject({
    server: serverSchema(8100).prefault({}),
    database: databaseSchema.default('sqlite:./.berth/marketplace.db'),
    providers: z.array(providerSchema).max(1000).default([]),
    /** As `allow_private` of every provider. */
    allow_private: z.boolean().default(false),
    /** Whether a machine is proved by SSH before it is sold as running. */
    verify_ssh: z.boolean().default(true),
    polling: pollingSchema,
    billing: billingSchema,
    team_limits: teamLimitsSchema,
    retention: retentionSchema,
    /** Absent: mails are written down, and not sent. */
    mail: z.strictObject({ smtp: smtpSchema }).optional(),
    limits: limitsSchema,
    rate_limits: rateLimitsSchema,
    log: logSchema,
  })
  .superRefine(({ providers, allow_private }, context) => {
    for (const [index, { id, base_url, profile, allow_private: own }] of providers.entries()) {
      const issue = (key: string, message: string) =>
        context.addIssue({ code: 'custom', path: ['providers', index, key], message });
      if (providers.findIndex((other) => other.id === id) !== index) issue('id', `${id} is there already`);
      const problem = baseUrlProblem(base_url, allow_private || own);
      if (problem !== undefined) issue('base_url', problem);
      if (profile === undefined && bundledProfileFile(id) === undefined)
        issue(
          'id',
          `no profile comes with Berth for it: give the file of one in \`profile\` (for ${bundledProfileIds().join(', ')} there is one)`,
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

/** What `berth marketplace` runs with: every path is absolute. */
export type MarketplaceConfig = z.infer<typeof marketplaceConfigSchema>;
