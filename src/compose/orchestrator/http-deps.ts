import { packageVersion } from '../../config/package-root.ts';
import type { Config } from '../../config/schema.ts';
import { ApiError } from '../../contract/errors.ts';
import { ListStreams } from '../../http/api/list-streams.ts';
import { Authenticator } from '../../orchestrator/accounts/authenticate.ts';
import { type CheckPassword, PasswordChecks } from '../../orchestrator/accounts/password-checks.ts';
import type { HttpDeps } from '../../orchestrator/http/deps.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import { Metrics } from '../../orchestrator/http/metrics.ts';
import { FailedLogins, RateLimits } from '../../orchestrator/http/rate-limits.ts';
import { PolledReads } from '../../orchestrator/instances/polled-reads.ts';
import { type Drivers, manifestsOf, type PlatformStates, supplyOf } from './platforms.ts';

/** O: Limits: a client polls each active instance every 10 seconds. */
const POLLS_PER_INSTANCE = { perSecond: 10, burst: 200 };
/** Unexpired tokens of an account. */
const LIVE_TOKENS = 10_000;
/** A failed login is not counted; its answer is delayed. */
const TOKENS_PER_ACCOUNT = { perSecond: 1, burst: 100 };

/** Without limits, nothing is counted. */
const UNLIMITED = { requests_per_second: 1, creates_per_second: 1 };

type HttpParts = Pick<HttpDeps, 'store' | 'catalog' | 'clock' | 'random' | 'log' | 'tracing'> &
  Pick<
    ConstructorParameters<typeof Metrics>[0],
    'writes' | 'alarms' | 'work' | 'diskRoom' | 'certificates'
  > & {
    config: Config;
    drivers: Drivers;
    checkPassword?: CheckPassword;
    environmentKey: { digest: Buffer; accountId: string } | undefined;
  };

/** Composes what the routes of the API use. */
export function composeHttp(
  {
    config,
    catalog,
    store,
    drivers,
    checkPassword,
    environmentKey,
    clock,
    random,
    log,
    writes,
    alarms,
    work,
    tracing,
    diskRoom,
    certificates,
  }: HttpParts,
  platforms: PlatformStates,
): HttpDeps {
  const { rate_limits: limits, quotas } = config;
  const enabled = limits !== false;
  const { requests_per_second: requests, creates_per_second: creates } = limits || UNLIMITED;
  const supply = supplyOf(platforms);
  const version = packageVersion();
  return {
    store,
    catalog,
    clock,
    random,
    log,
    supply,
    readUsage: async (platform) => platforms.get(platform)?.volumeUsage.read(),
    manifests: manifestsOf(drivers),
    authenticator: new Authenticator({ store, clock, environmentKey }),
    polledReads: new PolledReads(store),
    rateLimits: new RateLimits(clock, {
      enabled,
      pollsPerInstance: POLLS_PER_INSTANCE,
      requestsPerAccount: { perSecond: requests, burst: 10 * requests },
      createsPerAccount: { perSecond: creates, burst: 20 * creates },
      tokensPerAccount: TOKENS_PER_ACCOUNT,
    }),
    listStreams: new ListStreams(
      errors,
      log,
      (limit, retryAfterSeconds) =>
        new ApiError(
          'too_many_requests',
          `${limit} long lists of this account are in progress; read them to the end and try again.`,
          { retryAfterSeconds },
        ),
    ),
    passwordChecks: new PasswordChecks(random, checkPassword),
    failedLogins: new FailedLogins(clock, { enabled }),
    metrics: new Metrics({
      version,
      store,
      clock,
      platforms,
      writes,
      alarms,
      work,
      catalog,
      supply,
      certificates,
      diskRoom,
    }),
    quotas: {
      instances: quotas.instances,
      volumes: quotas.volumes,
      storageGb: quotas.storage_gb,
      liveTokens: LIVE_TOKENS,
    },
    trustedProxies: config.server.trusted_proxies,
    tracing,
  };
}
