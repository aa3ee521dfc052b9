import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { cachedFigure, collectBuild } from '../../http/api/metrics.ts';
import type { Clock } from '../../ports/clock.ts';
import { activeStatuses } from '../contract/deployment.ts';
import type { Store } from '../model/store.ts';
import type { Providers } from '../providers/provider.ts';

interface Deps {
  /** Of Berth, such as "0.1.0". */
  version: string;
  store: Store;
  clock: Clock;
  providers: Providers;
  writes: { areWritesTaken: boolean };
}

/** What /metrics tells, in the Prometheus text format. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #durations: Histogram<'route'>;

  constructor(deps: Deps) {
    const registers = [this.#registry];
    collectBuild(registers, deps.version);
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
    collectStore(registers, deps);
    collectProviders(registers, deps);
    collectWaiting(registers, deps);
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method, route, status: String(status) });
    this.#durations.observe({ route }, seconds);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}

function collectStore(registers: Registry[], { store, clock, writes }: Deps): void {
  const up: Gauge = new Gauge({
    name: 'berth_marketplace_store_up',
    help: 'Whether the database answers and takes writes. While it does not answer, what is counted in it is not told.',
    registers,
    collect: async () => {
      const answer = await answerOf(store.read.mail.nextDueAt());
      up.set(Number(answer !== undefined && writes.areWritesTaken));
    },
  });
  const countActive = cachedFigure(clock, () => store.read.deployments.countActive());
  const deployments = new Gauge({
    name: 'berth_marketplace_deployments',
    help: 'Deployments that are not over.',
    labelNames: ['status'],
    registers,
    collect: async () => {
      const counts = await countActive();
      deployments.reset();
      if (counts === undefined) return;
      for (const status of activeStatuses)
        deployments.set({ status }, counts.find((row) => row.status === status)?.count ?? 0);
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

function collectProviders(registers: Registry[], { providers, clock }: Deps): void {
  const age = new Gauge({
    name: 'berth_marketplace_provider_heard_seconds',
    help: 'How long ago a provider last told what it sells; NaN: never since the start.',
    labelNames: ['provider'],
    registers,
    collect: () => {
      for (const provider of providers.ids()) {
        const refreshedAt = providers.get(provider)?.catalog.refreshedAt ?? null;
        age.set({ provider }, refreshedAt === null ? Number.NaN : (clock.now() - refreshedAt) / 1000);
      }
    },
  });
}

/** What an operator may have to look at, by provider. */
function collectWaiting(registers: Registry[], { store, clock, providers }: Deps): void {
  const addGauge = (
    name: string,
    help: string,
    count: () => Promise<{ providerId: string; count: number }[]>,
  ) => {
    const cached = cachedFigure(clock, count);
    const gauge = new Gauge({
      name,
      help,
      labelNames: ['provider'],
      registers,
      collect: async () => {
        const counts = await cached();
        gauge.reset();
        if (counts === undefined) return;
        for (const provider of providers.ids()) gauge.set({ provider }, 0);
        for (const { providerId: provider, count } of counts) gauge.set({ provider }, count);
      },
    });
  };
  addGauge(
    'berth_marketplace_deployments_waiting_for_ssh',
    'Machines that are ONLINE at their provider and could not be logged in to by SSH yet: not running, and not billed.',
    () => store.read.deployments.countUnproved(),
  );
  addGauge(
    'berth_marketplace_losses_held',
    'Deployments and volumes that their provider denies, and that `berth marketplace losses accept` would end.',
    () => store.read.losses.countHeld(),
  );
}

/** Undefined while the database does not answer: the rest of the metrics is needed most then. */
async function answerOf<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}
