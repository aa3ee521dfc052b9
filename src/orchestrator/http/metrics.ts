import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { cachedFigure, collectBuild } from '../../http/api/metrics.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../model/store.ts';
import { instanceWorkKinds } from '../model/work.ts';

let ofProcess: Registry | undefined;

/** Memory, CPU and event loop: of the whole process, measured from the first time that they are asked for. */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

interface Deps {
  /** Of Berth, such as "0.1.0". */
  version: string;
  store: Store;
  clock: Clock;
  platform: { isUp: boolean; isSuspect: boolean };
  losses: { held: number };
  writes: { areWritesTaken: boolean };
}

/** What /metrics tells, in the Prometheus text format. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #durations: Histogram<'route'>;
  #polledReads = 0;

  constructor(deps: Deps) {
    const { store, clock } = deps;
    const registers = [this.#registry];
    collectBuild(registers, deps.version);
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
    collectPlatform(registers, deps);
    collectInstances(registers, store, clock);
    collectWork(registers, deps);
    collectCommitFeed(registers, store, clock);
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
    const all = Registry.merge([processMetrics(), this.#registry]);
    return { contentType: all.contentType, text: await all.metrics() };
  }
}

function collectPlatform(registers: Registry[], { platform, losses, store }: Deps): void {
  const addGauge = (name: string, help: string, toValue: () => number): void => {
    const gauge: Gauge = new Gauge({ name, help, registers, collect: () => gauge.set(toValue()) });
  };
  addGauge('berth_platform_up', 'Whether the platform answers and can be believed.', () =>
    Number(platform.isUp),
  );
  addGauge('berth_platform_suspect', 'Whether the platform answers and cannot be believed.', () =>
    Number(platform.isSuspect),
  );
  addGauge(
    'berth_losses_held',
    'Instances that the platform seems to have lost, and that `berth losses accept` would end.',
    () => losses.held,
  );
  const suspect: Gauge = new Gauge({
    name: 'berth_volumes_doubted',
    help: 'Whether too many volumes are missing for any deletion of one to be believed.',
    registers,
    collect: async () =>
      suspect.set(Number(((await answerOf(store.read.marks.get('volumes_doubted_since'))) ?? null) !== null)),
  });
}

function collectInstances(registers: Registry[], store: Store, clock: Clock): void {
  const countByStatus = cachedFigure(clock, () => store.read.instances.countByStatus());
  const instances = new Gauge({
    name: 'berth_instances',
    help: 'Instances that are not destroyed.',
    labelNames: ['status'],
    registers,
    collect: async () => {
      const counts = await countByStatus();
      instances.reset();
      for (const { status, count } of counts ?? []) instances.set({ status }, count);
    },
  });
}

function collectWork(registers: Registry[], { store, clock, writes }: Deps): void {
  const { work, marks } = store.read;
  const backlog = cachedFigure(clock, () => work.backlog());
  const countByStep = cachedFigure(clock, () => work.countInstancesByStep());
  const addGauge = (name: string, help: string, toValue: () => Promise<number>): void => {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers,
      collect: async () => gauge.set(await toValue()),
    });
  };
  addGauge(
    'berth_store_up',
    'Whether the store answers and takes writes. While it does not answer, what is counted in it is not told.',
    async () => {
      const answer = await answerOf(marks.get('restored_from'));
      return Number(answer !== undefined && writes.areWritesTaken);
    },
  );
  addGauge(
    'berth_work_open',
    'Steps of durable work that are not finished.',
    async () => (await backlog())?.count ?? Number.NaN,
  );
  addGauge(
    'berth_work_overdue_seconds',
    'How long the step of durable work that waits longest has been due, however often it was tried since.',
    async () => {
      const found = await backlog();
      if (found === undefined) return Number.NaN;
      return found.oldestDueAt === null ? 0 : Math.max(0, (clock.now() - found.oldestDueAt) / 1000);
    },
  );
  const waiting = new Gauge({
    name: 'berth_instances_waiting',
    help: 'Instances with a step of work that is not finished; verify: for their SSH to answer.',
    labelNames: ['step'],
    registers,
    collect: async () => {
      const counts = await countByStep();
      waiting.reset();
      if (counts === undefined) return;
      for (const step of instanceWorkKinds)
        waiting.set({ step }, counts.find((row) => row.step === step)?.count ?? 0);
    },
  });
}

function collectCommitFeed(registers: Registry[], store: Store, clock: Clock): void {
  const feedLive: Gauge = new Gauge({
    name: 'berth_commits_heard',
    help: 'Whether the commits of other servers are heard. While not, every read asks the store.',
    registers,
    collect: () => feedLive.set(Number(store.isCommitFeedLive())),
  });
  const offset: Gauge = new Gauge({
    name: 'berth_clock_offset_seconds',
    help: "How far the time here is ahead of the database's, where several servers share it.",
    registers,
    collect: () => offset.set((clock.offsetMs?.() ?? 0) / 1000),
  });
}

/** Undefined while the store does not answer: the rest of the metrics is needed most then. */
async function answerOf<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}
