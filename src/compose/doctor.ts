import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import type { Environment } from '../config/settings.ts';
import { counted } from '../contract/counted.ts';
import { type Asking, sideBySide } from '../drivers/kit/asking.ts';
import type { DoctorFinding } from '../orchestrator/operate/doctor.ts';
import type { Clock } from '../ports/clock.ts';
import { type Diagnosis, ok } from '../ports/diagnosis.ts';
import { InUse } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { diagnoseDatabase } from './diagnose-database.ts';
import { diagnoseDrift, type Running } from './diagnose-drift.ts';
import { diagnosePlatforms } from './diagnose-platforms.ts';
import { diagnoseTls } from './diagnose-tls.ts';
import { type ConfiguredDriver, configuredDrivers } from './driver-settings.ts';
import { ANSWER_MS, inTime, Late, QUESTION_MS } from './in-time.ts';

/** The limit of all questions about one platform. */
const ALL_QUESTIONS_MS = 20_000;

interface Ports {
  env: Environment;
  umask?: number | undefined;
  clock: Clock;
  log: Log;
  /** Where a server looks at itself: what it has open. */
  running?: Running;
}

/**
 * Looks at every prerequisite of `berth serve` with this configuration, one by one, and at whether the rows are as the
 * platforms. Changes nothing that stays.
 */
export async function* diagnose(
  config: Config,
  { env, umask, clock, log, running }: Ports,
): AsyncGenerator<DoctorFinding> {
  const within = { clock, over: new AbortController(), endsAt: clock.now() + ALL_QUESTIONS_MS };
  yield* guarded('TLS certificate', within, inTurn(diagnoseTls(config, clock.now())));
  yield* guarded('database', within, diagnoseDatabase(config.database, clock));
  yield* guarded('platforms of the database', within, diagnosePlatforms(config));
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  yield ok(
    'configuration',
    `it can be served with, and ${config.catalog} sells ${counted(catalog.offers.size, 'offer')}`,
  );
  const drivers = configuredDrivers(config, { catalog, env, umask, clock, log });
  const platforms = drivers.map(({ platform }) => platform);
  yield* sideBySide(drivers.map((driver) => diagnosePlatform(config, driver, { clock, platforms, running })));
}

/** Examines one platform and its rows. Its time limit does not depend on the other platforms. */
async function* diagnosePlatform(
  config: Config,
  configured: ConfiguredDriver,
  { clock, platforms, running }: { clock: Clock; platforms: readonly string[]; running: Running | undefined },
): AsyncGenerator<DoctorFinding> {
  const { platform, definition } = configured;
  const over = new AbortController();
  const asking: Asking = { withinMs: QUESTION_MS, signal: over.signal };
  const driver = { ...configured, setting: { ...configured.setting, asking } };
  const within = { clock, over, endsAt: clock.now() + ALL_QUESTIONS_MS };
  const problems = new Set<string>();
  for await (const finding of guarded(`driver ${definition.name}`, within, diagnoseDriver(driver))) {
    if (finding.verdict !== 'ok') problems.add(finding.finding);
    yield { platform, ...finding };
  }
  if (over.signal.aborted) return;
  const drift = diagnoseDrift(config, driver, { clock, platforms, running, withinMs: QUESTION_MS });
  for await (const finding of guarded('rows against machines', within, drift))
    yield { platform, ...(problems.has(finding.finding) ? notCompared(finding) : finding) };
}

async function* inTurn<T>(findings: Iterable<T>): AsyncGenerator<T> {
  yield* findings;
}

async function* diagnoseDriver({
  definition,
  options,
  setting,
}: ConfiguredDriver): AsyncGenerator<Diagnosis> {
  const { name } = definition;
  definition.check(options, setting);
  definition.checkCatalog?.(options, setting.catalog);
  yield {
    subject: `driver ${name}`,
    verdict: 'ok',
    finding: 'it can be opened, as far as this machine can tell',
  };
  if (definition.diagnose === undefined)
    yield {
      subject: `driver ${name}`,
      verdict: 'warning',
      finding: 'it cannot look at its prerequisites',
      remedy: 'Start `berth serve` and create a machine.',
    };
  else yield* definition.diagnose(options, setting);
}

/** How long an examination may take, and what ends what it asks. */
interface Within {
  clock: Clock;
  over: AbortController;
  /** In milliseconds since the epoch. */
  endsAt: number;
}

/** The findings, the last one broken where looking itself fails or does not end: then what is under way is aborted. */
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
    yield { subject, ...verdictOn(error) };
  }
}

/** Where the driver cannot be opened, which is told already: a server that runs may have it to itself. */
function notCompared({ subject }: Diagnosis): Diagnosis {
  return {
    subject,
    verdict: 'warning',
    finding: 'they were not compared: the driver could not be opened, as told above',
    remedy: 'While a server runs, the page Doctor of its console compares them.',
  };
}

function verdictOn(error: unknown): Omit<Diagnosis, 'subject'> {
  const finding = error instanceof Error ? error.message : String(error);
  if (error instanceof InUse)
    return {
      verdict: 'warning',
      finding,
      remedy: 'Nothing, if that process is the `berth serve` of this configuration.',
    };
  const remedy = error instanceof Late ? LATE_REMEDY : 'Mend what this says, and run `berth doctor` again.';
  return { verdict: 'broken', finding, remedy };
}

const LATE_REMEDY =
  'What comes after it was not looked at. See whether it runs, is overloaded, and can be reached from this machine, then run `berth doctor` again.';
