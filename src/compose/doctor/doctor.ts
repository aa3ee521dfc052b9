import { loadCatalog } from '../../config/load.ts';
import { sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import { counted } from '../../contract/counted.ts';
import { type Asking, sideBySide } from '../../drivers/kit/asking.ts';
import type { Clock } from '../../ports/clock.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';
import { InUse } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { type ConfiguredDriver, configuredDrivers } from '../drivers/driver-settings.ts';
import { diagnoseDatabase } from './diagnose-database.ts';
import { diagnosePlatforms } from './diagnose-platforms.ts';
import { diagnoseTls } from './diagnose-tls.ts';

/** Time limit of one question. The driver enforces it and names the part that did not answer. */
const QUESTION_MS = 5_000;
/** Longer than {@link QUESTION_MS}, so that the driver can still report the cause. */
const ANSWER_MS = QUESTION_MS + 1_000;
/** Time limit for all questions to one platform. */
const ALL_QUESTIONS_MS = 20_000;

interface Ports {
  env: Environment;
  umask?: number | undefined;
  clock: Clock;
  log: Log;
}

/** One finding, and the platform of berth.yaml that it concerns. Without a platform, it concerns this machine. */
export interface DoctorFinding extends Diagnosis {
  platform?: string;
}

/** Checks the prerequisites of `berth serve`. Leaves no data behind. */
export async function* diagnose(
  config: Config,
  { env, umask, clock, log }: Ports,
): AsyncGenerator<DoctorFinding> {
  const within = { clock, over: new AbortController(), endsAt: clock.now() + ALL_QUESTIONS_MS };
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

/** Checks one platform. Its time limit is independent of the other platforms. */
async function* diagnosePlatform(configured: ConfiguredDriver, clock: Clock): AsyncGenerator<DoctorFinding> {
  const { platform, definition } = configured;
  const over = new AbortController();
  const asking: Asking = { withinMs: QUESTION_MS, signal: over.signal };
  const driver = { ...configured, setting: { ...configured.setting, asking } };
  const within = { clock, over, endsAt: clock.now() + ALL_QUESTIONS_MS };
  for await (const finding of guarded(`driver ${definition.name}`, within, diagnoseDriver(driver)))
    yield { platform, ...finding };
}

async function* inTurn<T>(findings: Iterable<T>): AsyncGenerator<T> {
  yield* findings;
}

async function* diagnoseDriver({
  definition,
  options,
  setting,
}: ConfiguredDriver): AsyncGenerator<Diagnosis> {
  const subject = `driver ${definition.name}`;
  definition.check(options, setting);
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

/** The time limit of a check, and the controller that aborts its questions. */
interface Within {
  clock: Clock;
  over: AbortController;
  /** In milliseconds since the epoch. */
  endsAt: number;
}

/**
 * Passes the findings of a check on. If the check fails or times out, that is its last finding, and running questions
 * are aborted.
 */
async function* guarded(
  subject: string,
  { clock, over, endsAt }: Within,
  findings: AsyncIterable<Diagnosis>,
): AsyncGenerator<Diagnosis> {
  const iterator = findings[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await inTime(clock, Math.min(ANSWER_MS, endsAt - clock.now()), iterator.next());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    if (error instanceof Late) over.abort();
    iterator.return?.().catch(() => {});
    yield verdictOn(subject, error);
  }
}

function verdictOn(subject: string, error: unknown): Diagnosis {
  const finding = error instanceof Error ? error.message : String(error);
  if (error instanceof InUse)
    return warning(
      subject,
      finding,
      'Do nothing if that process is the `berth serve` of this configuration.',
    );
  const remedy = error instanceof Late ? LATE_REMEDY : 'Fix this, and run `berth doctor` again.';
  return broken(subject, finding, remedy);
}

const LATE_REMEDY =
  'The checks after it were skipped. Check that it runs, is not overloaded, and is reachable from this machine, then run `berth doctor` again.';

class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} */
async function inTime<T>(clock: Clock, withinMs: number, answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Late(`no answer within ${Math.max(0, Math.round(withinMs / 1000))} s`);
  const timer = clock.setTimer(withinMs, () => reject(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
