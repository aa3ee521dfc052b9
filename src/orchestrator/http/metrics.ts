import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';

/** What /metrics tells, in the Prometheus text format. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #durations: Histogram<'route'>;
  #polledReads = 0;

  constructor({ store, clock, platform }: { store: Store; clock: Clock; platform: { isUp: boolean } }) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Counter({
      name: 'berth_http_requests_total',
      help: 'Requests answered, without those of berth_polled_reads_total.',
      labelNames: ['method', 'route', 'status'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'berth_http_request_seconds',
      help: 'Time to the answer.',
      labelNames: ['route'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    });
    const polled = new Counter({
      name: 'berth_polled_reads_total',
      help: 'GET /v1/instances/{id} answered without the app.',
      registers,
      collect: () => {
        polled.reset();
        polled.inc(this.#polledReads);
      },
    });
    const instances = new Gauge({
      name: 'berth_instances',
      help: 'Instances that are not destroyed.',
      labelNames: ['status'],
      registers,
      collect: async () => {
        const counts = await answerOf(store.read.instances.countByStatus());
        instances.reset();
        for (const { status, count } of counts ?? []) instances.set({ status }, count);
      },
    });
    const backlog = new Gauge({
      name: 'berth_work_open',
      help: 'Steps of durable work that are not finished.',
      registers,
    });
    const oldest = new Gauge({
      name: 'berth_work_overdue_seconds',
      help: 'How long the oldest step of durable work has been due.',
      registers,
      collect: async () => {
        const { count, oldestDueAt } = (await answerOf(store.read.work.backlog())) ?? nothingKnown;
        backlog.set(count);
        oldest.set(oldestDueAt === null ? 0 : Math.max(0, (clock.now() - oldestDueAt) / 1000));
      },
    });
    const up: Gauge = new Gauge({
      name: 'berth_platform_up',
      help: 'Whether the platform answers.',
      registers,
      collect: () => up.set(platform.isUp ? 1 : 0),
    });
    const storeUp: Gauge = new Gauge({
      name: 'berth_store_up',
      help: 'Whether the store answers. While it does not, what is counted in it is not told.',
      registers,
      collect: async () => storeUp.set((await answerOf(store.read.work.backlog())) === undefined ? 0 : 1),
    });
  }

  /** Counted apart from the rest: one addition is all that the polled read may cost. */
  countPolledRead(): void {
    this.#polledReads++;
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method, route, status: String(status) });
    this.#durations.observe({ route }, seconds);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}

const nothingKnown = { count: Number.NaN, oldestDueAt: Number.NaN };

/** Undefined while the store does not answer: the rest of the metrics is needed most then. */
async function answerOf<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}
