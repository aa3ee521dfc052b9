import { Counter, Histogram, Registry } from 'prom-client';
import type { Figures } from '../../http/api/metrics.ts';
import { failureCauses } from '../model/failure.ts';
import type { EndedStep, Telemetry, TimedCall } from '../model/telemetry.ts';

const CALL_BUCKETS = [0.01, 0.05, 0.2, 1, 5, 15, 60];
const ONLINE_BUCKETS = [5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1_200];

/**
 * Metrics of this server's work since its start. Each label has a closed set of values, or those of the configuration.
 */
export class WorkMetrics implements Figures {
  readonly #registry = new Registry();
  readonly #calls: Counter<'platform' | 'call' | 'outcome'>;
  readonly #callSeconds: Histogram<'platform' | 'call'>;
  readonly #steps: Counter<'platform' | 'resource' | 'step' | 'next'>;
  readonly #online: Histogram<'offer'>;
  readonly #failed: Counter<'platform' | 'cause'>;

  constructor() {
    const registers = [this.#registry];
    this.#calls = new Counter({
      name: 'berth_platform_calls_total',
      help: 'Finished calls to the platform and SSH proofs (`ssh`), by outcome or reason for failure.',
      labelNames: ['platform', 'call', 'outcome'],
      registers,
    });
    this.#callSeconds = new Histogram({
      name: 'berth_platform_call_seconds',
      help: 'Duration of these calls.',
      labelNames: ['platform', 'call'],
      buckets: CALL_BUCKETS,
      registers,
    });
    this.#steps = new Counter({
      name: 'berth_steps_total',
      help: 'Finished steps of work, by what follows: another step, `again`, `finish`; `error`: internal error; `lost`: the lease was lost and nothing was written.',
      labelNames: ['platform', 'resource', 'step', 'next'],
      registers,
    });
    this.#online = new Histogram({
      name: 'berth_instance_online_seconds',
      help: 'Time from the create request until the instance is first ONLINE.',
      labelNames: ['offer'],
      buckets: ONLINE_BUCKETS,
      registers,
    });
    this.#failed = new Counter({
      name: 'berth_instances_failed_total',
      help: 'Instances that went to ERROR, by cause: the code of the failed call, `late`, `ssh`, `machine_failed`, `machine_gone`, `powered_off` or `not_stopped`.',
      labelNames: ['platform', 'cause'],
      registers,
    });
  }

  metrics(): Promise<string> {
    return this.#registry.metrics();
  }

  /** The telemetry of one platform's work. */
  of(platform: string): Telemetry {
    // Starts each series at 0. A series that begins with its first failure shows no rate.
    for (const cause of failureCauses) this.#failed.inc({ platform, cause }, 0);
    return {
      called: (call) => this.#countCall(platform, call),
      stepEnded: (step) => this.#countStep(platform, step),
    };
  }

  #countCall(platform: string, { call, outcome, tookMs }: TimedCall): void {
    this.#calls.inc({ platform, call, outcome });
    this.#callSeconds.observe({ platform, call }, tookMs / 1000);
  }

  #countStep(platform: string, { lease: { kind, resourceKind }, next, verdict }: EndedStep): void {
    this.#steps.inc({ platform, resource: resourceKind, step: kind, next });
    if (verdict?.status === 'ONLINE')
      this.#online.observe({ offer: verdict.offerId }, verdict.afterMs / 1000);
    if (verdict?.status === 'ERROR') this.#failed.inc({ platform, cause: verdict.cause });
  }
}
