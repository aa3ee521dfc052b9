import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import { counted } from '../../contract/counted.ts';
import { type Asking, sideBySide } from '../../drivers/kit/asking.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';
import type { Log } from '../../ports/log.ts';
import { type ConfiguredDriver, configuredDrivers } from '../drivers/driver-settings.ts';
import { diagnoseDatabase } from './diagnose-database.ts';
import { diagnosePlatforms } from './diagnose-platforms.ts';
import { diagnoseTls } from './diagnose-tls.ts';
import { guarded } from './guarded.ts';

/** Time limit of one question. The driver enforces it and names the part that did not answer. */
const QUESTION_MS = 5_000;
/** Longer than {@link QUESTION_MS}, so that the driver can still report the cause. */
const answerMs = QUESTION_MS + 1_000;
/** Time limit for all questions to one platform. */
const ALL_QUESTIONS_MS = 20_000;

interface Ports {
  env: Environment;
  umask?: number | undefined;
  clock: Clock;
  log: Log;
}

/** Checks the prerequisites of `berth serve`. Leaves no data behind. */
export async function* diagnose(
  config: Config,
  { env, umask, clock, log }: Ports,
): AsyncGenerator<Diagnosis> {
  const within = { clock, over: new AbortController(), answerMs, endsAt: clock.now() + ALL_QUESTIONS_MS };
  const { server } = config;
  yield* guarded('TLS certificate', within, inTurn(diagnoseTls(server, clock.now())));
  const ofAdmin = [...diagnoseTls(server.admin, clock.now(), '--admin-tls')].map((one) => ({
    ...one,
    subject: `${one.subject} of the admin listener`,
  }));
  yield* guarded('TLS certificate of the admin listener', within, inTurn(ofAdmin));
  yield* guarded('database', within, diagnoseDatabase(config.database, clock));
  yield* guarded('platforms of the database', within, diagnosePlatforms(config));
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  yield ok(
    'configuration',
    `it is valid, and ${config.catalog} sells ${counted(catalog.offers.size, 'offer')}`,
  );
  const drivers = configuredDrivers(config, { catalog, env, umask, clock, log });
  yield* sideBySide(drivers.map((driver) => diagnosePlatform(driver, clock)));
}

/**
 * Checks one platform. Its time limit is independent of the other platforms. `over`: of the server that runs the driver
 * and has checked its settings; it aborts the questions.
 */
export async function* diagnosePlatform(
  configured: ConfiguredDriver,
  clock: Clock,
  over?: AbortController,
): AsyncGenerator<Diagnosis> {
  const { platform, definition } = configured;
  const ending = over ?? new AbortController();
  const asking: Asking = { withinMs: QUESTION_MS, signal: ending.signal };
  const driver = { ...configured, setting: { ...configured.setting, asking } };
  const within = { clock, over: ending, answerMs, endsAt: clock.now() + ALL_QUESTIONS_MS };
  const findings = diagnoseDriver(driver, over !== undefined);
  for await (const finding of guarded(`driver ${definition.name}`, within, findings))
    yield { platform, ...finding };
}

async function* inTurn<T>(findings: Iterable<T>): AsyncGenerator<T> {
  yield* findings;
}

async function* diagnoseDriver(
  { definition, options, setting }: ConfiguredDriver,
  isRunning: boolean,
): AsyncGenerator<Diagnosis> {
  const subject = `driver ${definition.name}`;
  // It would report that this server uses what no two processes may use.
  if (!isRunning) definition.check(options, setting);
  definition.checkCatalog?.(options, setting.catalog);
  yield ok(subject, 'its settings are valid');
  if (definition.diagnose !== undefined) yield* definition.diagnose(options, setting);
  else
    yield warning(
      subject,
      'it does not check its prerequisites',
      'Start `berth serve` and create a machine.',
    );
}
