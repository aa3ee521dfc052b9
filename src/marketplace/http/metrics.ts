import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../ports/clock.ts';
import { activeStatuses } from '../contract/deployment.ts';
import type { Store } from '../ports/store.ts';
import type { Providers } from '../providers/provider.ts';

interface Deps {
  store: Store;
  clock: Clock;
  providers: Providers;
}

/** What /metrics tells, in the Prometheus text format. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #durations: Histogram<'route'>;

  constructor(deps: Deps) {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'berth_marketplace_http_requests_total',
      help: 'Requests answered.',
      labelNames: ['method', 'route', 'status'],
      registers,
    });
    this.#durations = new Histogram({
      name: 'berth_marketplace_http_request_seconds',
      help: 'Time to the answer.',
      labelNames: ['route'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30],
      registers,
    });
    tellStore(registers, deps);
    tellProviders(registers, deps);
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method, route, status: String(status) });
    this.#durations.observe({ route }, seconds);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}

function tellStore(registers: Registry[], { store, clock }: Deps): void {
  const deployments = new Gauge({
    name: 'berth_marketplace_deployments',
    help: 'Deployments that are not over.',
    labelNames: ['status'],
    registers,
    collect: async () => {
      const records = await answerOf(store.read.deployments.list({ statuses: activeStatuses }));
      deployments.reset();
      if (records === undefined) return;
      for (const status of activeStatuses)
        deployments.set({ status }, records.filter((record) => record.status === status).length);
    },
  });
  const mail: Gauge = new Gauge({
    name: 'berth_marketplace_mail_overdue_seconds',
    help: 'How long the oldest mail has been due.',
    registers,
    collect: async () => {
      const dueAt = await answerOf(store.read.mail.nextDueAt());
      if (dueAt === undefined) mail.set(Number.NaN);
      else mail.set(dueAt === null ? 0 : Math.max(0, (clock.now() - dueAt) / 1000));
    },
  });
}

function tellProviders(registers: Registry[], { providers, clock }: Deps): void {
  const heard = new Gauge({
    name: 'berth_marketplace_provider_heard_seconds',
    help: 'How long ago a provider last told what it sells; NaN: never since the start.',
    labelNames: ['provider'],
    registers,
    collect: () => {
      for (const provider of providers.ids()) {
        const heardAt = providers.get(provider)?.catalog.heardAt ?? null;
        heard.set({ provider }, heardAt === null ? Number.NaN : (clock.now() - heardAt) / 1000);
      }
    },
  });
}

/** Undefined while the database does not answer: the rest of the metrics is needed most then. */
async function answerOf<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}
