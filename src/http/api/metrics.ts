import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { KnownCertificate } from '../../ports/certificates.ts';
import type { Clock } from '../../ports/clock.ts';

/** How long a figure of the metrics is cached. */
const CACHE_MS = 5_000;

/** Caches a figure of the database for five seconds. Undefined while the database does not answer. */
export function cachedFigure<T>(clock: Clock, count: () => Promise<T>): () => Promise<T | undefined> {
  let cached: { at: number; figure: Promise<T | undefined> } | undefined;
  return () => {
    const now = clock.now();
    if (cached === undefined || now - cached.at >= CACHE_MS || now < cached.at)
      cached = { at: now, figure: answerOf(count()) };
    return cached.figure;
  };
}

/** Returns undefined while the database does not answer: the other metrics are most needed then. */
export async function answerOf<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}

let ofProcess: Registry | undefined;

/** Memory, CPU and event loop of the whole process, measured from the first call on. */
function processMetrics(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
    // `_total` is the suffix of counters. nodejs_active_resources and similar gauges have the same figures by type.
    for (const { name, type } of ofProcess.getMetricsAsArray())
      if (name.endsWith('_total') && `${type}` === 'gauge') ofProcess.removeSingleMetric(name);
  }
  return ofProcess;
}

/** The certificates that a server depends on. */
export interface CertificateList {
  list(): KnownCertificate[];
}

/** Figures in the Prometheus text format. */
export interface Figures {
  metrics(): Promise<string>;
}

/** The metrics of both servers, in the Prometheus text format. `prefix` begins the names of its figures. */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #registers = [this.#registry];
  readonly #others: Figures[] = [];
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #durations: Histogram<'route'>;

  constructor({
    version,
    prefix,
    requests,
    buckets,
    hasProcessMetrics,
    clock,
    certificates,
  }: {
    /** Version of Berth, such as "0.1.0". */
    version: string;
    prefix: string;
    /** Description of the counted requests. */
    requests: string;
    /** Buckets of the time to an answer, in seconds. */
    buckets: number[];
    /** Whether to include memory, CPU and event loop of the process. */
    hasProcessMetrics: boolean;
    clock: Pick<Clock, 'now'>;
    certificates: CertificateList;
  }) {
    const registers = this.#registers;
    if (hasProcessMetrics) this.include(processMetrics());
    new Gauge({
      name: 'berth_build_info',
      help: 'Version of Berth and of Node.',
      labelNames: ['version', 'node'],
      registers,
    }).set({ version, node: process.version }, 1);
    this.#requests = new Counter({
      name: `${prefix}_http_requests_total`,
      help: requests,
      labelNames: ['method', 'route', 'status'],
      registers,
    });
    this.gaugeByAll(
      ['use', 'name'],
      `${prefix}_certificate_expires_in_seconds`,
      'Time until a TLS certificate expires; negative: it has expired. use: api, admin, provider, driver, incus_server, incus_client; name: the provider or platform.',
      async () =>
        certificates.list().map(({ use, name, endsAt }) => [{ use, name }, (endsAt - clock.now()) / 1000]),
    );
    this.#durations = new Histogram({
      name: `${prefix}_http_request_seconds`,
      help: 'Time from request to response.',
      labelNames: ['route'],
      buckets,
      registers,
    });
  }

  countRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method, route, status: String(status) });
    this.#durations.observe({ route }, seconds);
  }

  async render(): Promise<{ contentType: string; text: string }> {
    const texts = await Promise.all([this.#registry, ...this.#others].map((figures) => figures.metrics()));
    return { contentType: this.#registry.contentType, text: texts.join('\n') };
  }

  /** A counter that is read at each scrape. */
  protected counter(name: string, help: string, read: () => number): void {
    const counter: Counter = new Counter({
      name,
      help,
      registers: this.#registers,
      collect: () => {
        counter.reset();
        counter.inc(read());
      },
    });
  }

  /** A gauge that is read at each scrape. */
  protected gauge(name: string, help: string, read: () => number | Promise<number>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: this.#registers,
      collect: async () => gauge.set(await read()),
    });
  }

  /** The disk of the database, in bytes. NaN if it is on another machine. */
  protected addDiskMetrics(
    prefix: string,
    room: () => Promise<{ free: number; size: number } | undefined>,
  ): void {
    const add = (name: string, help: string, of: 'free' | 'size'): void =>
      this.gauge(`${prefix}_database_disk_${name}`, help, async () => (await room())?.[of] ?? Number.NaN);
    add('free_bytes', 'Free space on the disk of a SQLite database.', 'free');
    add('size_bytes', 'Size of the disk of a SQLite database.', 'size');
  }

  /** The open alarms by kind. `add` counts those that are no rows. */
  protected addAlarmMetrics(
    prefix: string,
    alarms: { listOpen(): { kind: string; acknowledgedBy: string | null }[] },
    kinds: readonly string[],
    add: (counts: Map<string, number>) => Map<string, number> = (counts) => counts,
  ): void {
    this.gaugeBy('kind', `${prefix}_alarms`, 'Open alarms of all servers.', async () => {
      const counts = new Map<string, number>(kinds.map((kind) => [kind, 0]));
      for (const { kind } of alarms.listOpen()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      return add(counts);
    });
    this.gauge(
      `${prefix}_alarms_unacknowledged`,
      'Open alarms that are not acknowledged.',
      () => alarms.listOpen().filter(({ acknowledgedBy }) => acknowledgedBy === null).length,
    );
  }

  protected include(figures: Figures): void {
    this.#others.push(figures);
  }

  /** Adds a gauge with one figure for each value of a label. `read` returns undefined if there are none now. */
  protected gaugeBy(
    label: string,
    name: string,
    help: string,
    read: () => Promise<Iterable<readonly [value: string, figure: number]> | undefined>,
  ): void {
    this.gaugeByAll([label], name, help, async () => {
      const figures = await read();
      return figures && [...figures].map(([value, figure]) => [{ [label]: value }, figure]);
    });
  }

  /** Like {@link gaugeBy}, for several labels. */
  protected gaugeByAll(
    labelNames: string[],
    name: string,
    help: string,
    read: () => Promise<Iterable<readonly [labels: Record<string, string>, figure: number]> | undefined>,
  ): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: this.#registers,
      collect: async () => {
        const figures = await read();
        gauge.reset();
        for (const [labels, figure] of figures ?? []) gauge.set(labels, figure);
      },
    });
  }
}

/** Seconds since `dueAt`: 0 if nothing is due (null), NaN if unknown. */
export function secondsOverdue(dueAt: number | null | undefined, now: number): number {
  if (dueAt === undefined) return Number.NaN;
  return dueAt === null ? 0 : Math.max(0, (now - dueAt) / 1000);
}

/** A figure for each of `values`: 0 if nothing was counted. */
export function orZero(
  values: readonly string[],
  counted: readonly (readonly [value: string, figure: number])[] | undefined,
): (readonly [string, number])[] | undefined {
  return counted && [...values.map((value) => [value, 0] as const), ...counted];
}
