import { z } from 'zod';
import { timeOrNullSchema, toTime } from '../../operators/views/values.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';

/** One finding, and the platform of berth.yaml that it concerns. Undefined: it concerns this machine. */
export interface DoctorFinding extends Diagnosis {
  platform?: string;
}

export const doctorReportSchema = z
  .object({
    begun_at: timeOrNullSchema.meta({ description: 'Null: no check since the server started.' }),
    ended_at: timeOrNullSchema.meta({ description: 'Null: the check is still running.' }),
    findings: z.array(
      z.object({
        platform: z.string().nullable().meta({ description: 'Null: the server itself.' }),
        subject: z.string(),
        verdict: z.enum(['ok', 'warning', 'broken']),
        finding: z.string(),
        remedy: z.string().nullable().meta({ description: 'What to do; null: no action needed.' }),
      }),
    ),
  })
  .meta({ id: 'DoctorReport' });
export type DoctorReport = z.infer<typeof doctorReportSchema>;

/** How long `look` waits for the checks to end. */
const WAIT_MS = 20_000;

interface Deps {
  clock: Clock;
  /** Runs the checks and yields their findings one by one. */
  examine: () => AsyncIterable<DoctorFinding>;
}

/** Runs the checks of `berth doctor` in a server, for the API and the console. */
export class Doctor {
  readonly #deps: Deps;
  #begunAt: number | null = null;
  #endedAt: number | null = null;
  #findings: DoctorFinding[] = [];
  #running: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The findings of the last run, or of the current run so far. */
  report(): DoctorReport {
    return {
      begun_at: toTime(this.#begunAt),
      ended_at: toTime(this.#endedAt),
      findings: this.#findings.map(({ platform = null, remedy = null, subject, verdict, finding }) => ({
        platform,
        subject,
        verdict,
        finding,
        remedy,
      })),
    };
  }

  /** Starts the checks unless they are already running, and waits for their end, at most `WAIT_MS`. */
  async look(): Promise<DoctorReport> {
    this.#running ??= this.#examine().finally(() => {
      this.#running = undefined;
    });
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = this.#deps.clock.setTimer(WAIT_MS, resolve);
    await Promise.race([this.#running, late]);
    timer.cancel();
    return this.report();
  }

  async #examine(): Promise<void> {
    const { clock, examine } = this.#deps;
    this.#begunAt = clock.now();
    this.#endedAt = null;
    this.#findings = [];
    try {
      for await (const finding of examine()) this.#findings.push(finding);
    } catch (error) {
      const finding = error instanceof Error ? error.message : String(error);
      this.#findings.push({ subject: 'berth doctor', verdict: 'broken', finding });
    }
    this.#endedAt = clock.now();
  }
}
