import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import type { Environment } from '../config/settings.ts';
import { counted } from '../contract/counted.ts';
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

/** What takes longer to look at is told as broken. */
const LONGEST_LOOK_MS = 60_000;

interface Ports {
  env: Environment;
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
  { env, clock, log, running }: Ports,
): AsyncGenerator<DoctorFinding> {
  yield* guarded('TLS certificate', clock, inTurn(diagnoseTls(config, clock.now())));
  yield* guarded('database', clock, diagnoseDatabase(config.database, clock));
  yield* guarded('platforms of the database', clock, diagnosePlatforms(config));
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  yield ok(
    'configuration',
    `it can be served with, and ${config.catalog} sells ${counted(catalog.offers.size, 'offer')}`,
  );
  const drivers = configuredDrivers(config, { catalog, env, clock, log });
  const platforms = drivers.map(({ platform }) => platform);
  for (const driver of drivers) {
    const { platform } = driver;
    const problems = new Set<string>();
    for await (const finding of guarded(`driver ${driver.definition.name}`, clock, diagnoseDriver(driver))) {
      if (finding.verdict !== 'ok') problems.add(finding.finding);
      yield { platform, ...finding };
    }
    const drift = diagnoseDrift(config, driver, { clock, platforms, running });
    for await (const finding of guarded('rows against machines', clock, drift))
      yield { platform, ...(problems.has(finding.finding) ? notCompared(finding) : finding) };
  }
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

/** The findings, the last one broken where looking itself fails or never ends. */
async function* guarded(
  subject: string,
  clock: Clock,
  findings: AsyncIterable<Diagnosis>,
): AsyncGenerator<Diagnosis> {
  const iterator = findings[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await inTime(clock, iterator.next());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
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
  if (!(error instanceof InUse)) return { verdict: 'broken', finding };
  return {
    verdict: 'warning',
    finding,
    remedy: 'Nothing, if that process is the `berth serve` of this configuration.',
  };
}

async function inTime<T>(clock: Clock, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Error(`no answer within ${LONGEST_LOOK_MS / 1000} s`);
  const timer = clock.setTimer(LONGEST_LOOK_MS, () => reject(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
