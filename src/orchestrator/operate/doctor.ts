import { z } from 'zod';
import { type ActionDeps, defineAction, defineView } from '../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../operator-kit/views/values.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';

/** One finding, and the platform of berth.yaml that it concerns. Without a platform, it concerns this machine. */
export interface DoctorFinding extends Diagnosis {
  platform?: string;
}

const doctorReportSchema = z
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

interface DoctorDeps {
  doctor: Pick<Doctor, 'report' | 'look'>;
}

export const doctorView = defineView({
  name: 'getDoctorReport',
  tag: 'Views',
  path: '/doctor',
  summary: 'Findings of the last check by this server',
  description: 'The same checks as `berth doctor`: database, clock, TLS, drivers, and rows against machines.',
  reply: ['The findings.', doctorReportSchema],
  read: ({ doctor }: DoctorDeps) => doctor.report(),
});

/** Changes nothing, so no row of the audit log is written. */
export const runDoctor = defineAction({
  name: 'runDoctor',
  tag: 'Views',
  path: '/doctor',
  summary: 'Check everything that this server needs',
  description:
    'Changes nothing. A long check is answered before it ends: `ended_at` is then null, and GET returns the rest.',
  errors: [],
  reply: ['The findings so far.', doctorReportSchema],
  form: { title: () => 'Doctor', button: 'Look now', page: () => '/console/doctor' },
  run: ({ doctor }: DoctorDeps & ActionDeps) => doctor.look(),
});
