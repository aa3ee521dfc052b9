import type { CheckedPlatform, PlatformChecker } from '../../orchestrator/operate/views/platform-check.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import type { ConfiguredDriver } from '../drivers/driver-settings.ts';
import { diagnosePlatform } from './doctor.ts';

/** A check that is younger is shown again: pages are read every few seconds. */
const AGAIN_MS = 60_000;

interface Run extends CheckedPlatform {
  findings: Diagnosis[];
  over: AbortController;
  ended: Promise<void>;
}

/** Runs the checks of `berth doctor` on the platforms of a running server, each at most once a minute. */
export class PlatformChecks implements PlatformChecker {
  readonly #drivers: readonly ConfiguredDriver[];
  readonly #clock: Clock;
  readonly #runs = new Map<string, Run>();

  constructor(drivers: readonly ConfiguredDriver[], clock: Clock) {
    this.#drivers = drivers;
    this.#clock = clock;
  }

  /** The findings so far of the current check. Begins one if the last one is old. Null: there is no such platform. */
  read(platform: string): CheckedPlatform | null {
    const driver = this.#drivers.find((one) => one.platform === platform);
    if (driver === undefined) return null;
    const last = this.#runs.get(platform);
    const isRecent = last !== undefined && this.#clock.now() - last.startedAt < AGAIN_MS;
    if (last !== undefined && (isRecent || !last.isFinished)) return last;
    const begun = this.#begin(driver);
    this.#runs.set(platform, begun);
    return begun;
  }

  /** Aborts the questions of running checks, and waits for their end. */
  async stop(): Promise<void> {
    for (const { over } of this.#runs.values()) over.abort();
    await Promise.all([...this.#runs.values()].map(({ ended }) => ended));
  }

  #begin(driver: ConfiguredDriver): Run {
    const over = new AbortController();
    const run: Run = {
      startedAt: this.#clock.now(),
      isFinished: false,
      findings: [],
      over,
      ended: Promise.resolve(),
    };
    const collect = async (): Promise<void> => {
      for await (const finding of diagnosePlatform(driver, this.#clock, over)) run.findings.push(finding);
      run.isFinished = true;
    };
    run.ended = collect();
    return run;
  }
}
