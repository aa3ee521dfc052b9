import type { KeyObject } from 'node:crypto';
import { signed } from '../certificate/sign.ts';
import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/transport.ts';
import type { StateFolder } from '../resources/ledger-file.ts';
import { openEntries } from '../resources/sweep.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import { AlertSender } from './alerts.ts';
import type { Certificate } from './certificate/certificate.ts';
import type { MonitorConfig, ProviderConfig } from './config.ts';
import { ProviderWatch } from './provider-watch.ts';
import { filesOf, writeFiles } from './publish/files.ts';
import type { MonitorState } from './publish/metrics.ts';
import { MS_PER_DAY } from './spending.ts';
import type { State } from './state.ts';

const PUBLISH_AT_MOST_MS = 5 * 60_000;
const MS_PER_HOUR = 3_600_000;

/** A provider with what it takes to ask it. */
export interface Watched {
  provider: ProviderConfig;
  baseUrl: string;
  apiKey: string;
  transport: Transport;
}

export interface MonitorParts {
  config: MonitorConfig;
  /** Signs the certificates. */
  signKey?: KeyObject;
  watched: readonly Watched[];
  state: State;
  ssh: SshClient;
  clock: Clock;
  /** For the webhook. */
  transport: Transport;
  log: (text: string) => void;
  /** Ends the monitor. Running probes destroy their machines first. */
  signal: AbortSignal;
  /** Ends the clean-up too: the next start finishes it. */
  abandon: AbortSignal;
}

/** Probes all providers at drawn moments, and says what it has seen of them. */
export class Monitor {
  readonly #parts: MonitorParts;
  #watches: ProviderWatch[] = [];
  #publishedAt = Number.NEGATIVE_INFINITY;
  readonly #sender: AlertSender | undefined;

  constructor(parts: MonitorParts) {
    this.#parts = parts;
    const { state, clock, transport, config } = parts;
    this.#sender =
      config.webhook === undefined
        ? undefined
        : new AlertSender({ state, clock, transport, webhook: config.webhook });
  }

  /** The certificates at this time, signed if there is a key. */
  certificates(): Certificate[] {
    const { signKey } = this.#parts;
    const certificates = this.#watches.map((watch) => watch.certificate());
    if (signKey === undefined) return certificates;
    return certificates.map((certificate) => signed('berth-conformance-monitor', certificate, signKey, {}));
  }

  state(): MonitorState {
    const watches = this.#watches;
    return {
      left: new Map(watches.map((watch) => [watch.name, watch.left])),
      spentToday: new Map(watches.map((watch) => [watch.name, watch.spentToday()])),
      lastProbeAt: new Map(
        watches.flatMap(({ name, lastProbeAt }) => (lastProbeAt === undefined ? [] : [[name, lastProbeAt]])),
      ),
      unsentAlerts: this.#sender === undefined ? 0 : this.#parts.state.unsentAlerts().length,
    };
  }

  /**
   * Runs until the signal is aborted. Returns the number of resources that may still exist.
   * @throws {StateError} if another monitor holds the state
   */
  async run(): Promise<number> {
    const { watched, state, clock, log, signal } = this.#parts;
    using _ = state.lock();
    const seed = state.seed();
    this.#watches = watched.map(
      (each) =>
        new ProviderWatch({
          ...this.#parts,
          ...each,
          seed,
          onProbe: () => this.#publish(),
          alert: (alert) => {
            const at = new Date(clock.wall()).toISOString();
            log(`${each.provider.name}: ${alert.text}`);
            state.addAlert({ ...alert, at, provider: each.provider.name });
            this.#sender?.wake(signal);
          },
        }),
    );
    for (const watch of this.#watches) watch.load();
    this.#sender?.wake(signal);
    this.#publish();
    await Promise.all([this.#tidyHourly(), ...this.#watches.map((watch) => watch.run())]);
    await this.#sender?.settled();
    return this.#watches.reduce((left, { name }) => left + leftIn(state.readLedgers(name)), 0);
  }

  /** Removes what is old, and publishes: a certificate changes without a probe too, such as when probes fail for days. */
  async #tidyHourly(): Promise<void> {
    const { state, clock, config, signal } = this.#parts;
    while (!signal.aborted) {
      this.#attempt(() => state.prune(clock.wall() - 2 * config.window_days * MS_PER_DAY));
      await clock.sleep(MS_PER_HOUR, signal).catch(() => {});
      if (!signal.aborted) this.#publish();
    }
  }

  /** Reports changes of status, and writes the files, at most every few minutes. */
  #publish(): void {
    const { clock } = this.#parts;
    if (clock.now() - this.#publishedAt < PUBLISH_AT_MOST_MS) return;
    this.#publishedAt = clock.now();
    this.#attempt(() => this.#publishNow());
  }

  #publishNow(): void {
    const { config, state, clock, log, signal } = this.#parts;
    const certificates = this.certificates();
    if (config.publish_dir !== undefined) writeFiles(config.publish_dir, filesOf(certificates));
    for (const { provider, status, because } of certificates) {
      const before = state.status(provider);
      if (before === status) continue;
      state.setStatus(provider, status);
      const at = new Date(clock.wall()).toISOString();
      const text = `${before ?? 'new'} → ${status}${because.length === 0 ? '' : `: ${because.join('; ')}`}`;
      state.addAlert({ id: `${provider}/status/${at}`, at, provider, kind: 'status', text });
      log(`${provider}: ${text}`);
      this.#sender?.wake(signal);
    }
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#parts.log(`not published: ${error instanceof Error ? error.message : error}`);
    }
  }
}

function leftIn({ open, unreadable }: StateFolder): number {
  return open.reduce((sum, stored) => sum + openEntries(stored).length, unreadable.length);
}
