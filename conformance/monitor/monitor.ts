import type { KeyObject } from 'node:crypto';
import type { Clock } from '../http/clock.ts';
import type { Transport } from '../http/transport.ts';
import { thisProcess } from '../resources/process-identity.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import { AlertSender } from './alerts.ts';
import type { Certificate } from './certificate/certificate.ts';
import { signCertificate } from './certificate/sign.ts';
import type { MonitorConfig, ProviderConfig } from './config.ts';
import { ProviderWatch } from './provider-watch.ts';
import { filesOf, writeFiles } from './publish/files.ts';
import type { MonitorState } from './publish/metrics.ts';
import { MS_PER_DAY } from './spending.ts';
import { LEASE_MS, LeaseLost } from './state/lease.ts';
import type { State } from './state/state.ts';

const RENEW_MS = LEASE_MS / 3;
const LEASE_ASKED_EVERY_MS = 15_000;
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
  #holdsLease = false;
  #publishedAt = Number.NEGATIVE_INFINITY;
  #publishing: Promise<void> = Promise.resolve();
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
    return certificates.map((certificate) => signCertificate(certificate, signKey));
  }

  async state(): Promise<MonitorState> {
    const watches = this.#watches;
    const spent = await Promise.all(
      watches.map(async (watch) => [watch.name, await watch.spentToday()] as const),
    );
    return {
      left: new Map(watches.map((watch) => [watch.name, watch.left])),
      spentToday: new Map(spent),
      lastProbeAt: new Map(
        watches.flatMap(({ name, lastProbeAt }) => (lastProbeAt === undefined ? [] : [[name, lastProbeAt]])),
      ),
      unsentAlerts: this.#sender === undefined ? 0 : (await this.#parts.state.unsentAlerts()).length,
      holdsLease: this.#holdsLease,
    };
  }

  /**
   * Runs until the signal is aborted. While another monitor holds the state it waits. Returns the number of resources that
   * may still exist.
   */
  async run(): Promise<number> {
    const { signal, state, log } = this.#parts;
    while (!signal.aborted) {
      try {
        if (await this.#takeLease()) await this.#watchAll();
      } catch (error) {
        if (!(error instanceof LeaseLost)) throw error;
        log(`${error.message}: waiting for it`);
      }
      this.#holdsLease = false;
    }
    await this.#publishing;
    await state.lease.release().catch(() => {});
    await this.#sender?.settled();
    let left = 0;
    for (const { provider } of this.#parts.watched)
      for (const { entries } of await state.openRuns(provider.name).catch(() => []))
        left += entries.filter(({ state: of }) => of !== 'gone' && of !== 'refused').length;
    return left;
  }

  /** False if it was interrupted meanwhile. */
  async #takeLease(): Promise<boolean> {
    const { state, clock, signal, log } = this.#parts;
    for (let said = ''; !signal.aborted; ) {
      const holder = await state.lease
        .take(thisProcess(), clock.wall())
        .catch((error: Error) => error.message);
      if (holder === undefined) return true;
      if (holder !== said) log(`waiting for the state, which ${holder} holds`);
      said = holder;
      await clock.sleep(LEASE_ASKED_EVERY_MS, signal).catch(() => {});
    }
    return false;
  }

  async #watchAll(): Promise<void> {
    const { config, state, ssh, clock, abandon, log } = this.#parts;
    this.#holdsLease = true;
    const lost = new AbortController();
    const signal = AbortSignal.any([this.#parts.signal, lost.signal]);
    const seed = await state.seed();
    this.#watches = this.#parts.watched.map(
      (watched) =>
        new ProviderWatch({
          ...watched,
          config,
          state,
          seed,
          ssh,
          clock,
          signal,
          // A monitor that lost the state leaves its machines to the one that has it.
          abandon: AbortSignal.any([abandon, lost.signal]),
          log,
          onProbe: () => this.#publish(signal),
          alert: async (alert) => {
            const at = new Date(clock.wall()).toISOString();
            log(`${watched.provider.name}: ${alert.text}`);
            await state.addAlert({ ...alert, at, provider: watched.provider.name });
            this.#sender?.wake(signal);
          },
        }),
    );
    for (const watch of this.#watches) await watch.load();
    this.#sender?.wake(signal);
    this.#publish(signal);
    const ended = new AbortController();
    const background = AbortSignal.any([signal, ended.signal]);
    try {
      const loops = [this.#renewLease(background, lost), this.#tidyHourly(background)];
      // Each ends before the state is asked for again: none may write for a monitor that lost it.
      await Promise.all(
        this.#watches.map((watch) => watch.run().catch((error: unknown) => lost.abort(error))),
      );
      ended.abort();
      await Promise.all(loops);
      await this.#publishing;
    } finally {
      ended.abort();
    }
    if (lost.signal.aborted) throw lost.signal.reason;
  }

  async #renewLease(signal: AbortSignal, lost: AbortController): Promise<void> {
    const { state, clock } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(RENEW_MS, signal).catch(() => {});
      // While the database does not answer, no other monitor can take the lease either.
      const isHeld = signal.aborted || (await state.lease.renew(clock.wall()).catch(() => true));
      if (!isHeld) lost.abort(new LeaseLost());
    }
  }

  /** Removes what is old, and publishes: a certificate changes without a probe too, such as when probes fail for days. */
  async #tidyHourly(signal: AbortSignal): Promise<void> {
    const { state, clock, config } = this.#parts;
    while (!signal.aborted) {
      await state.prune(clock.wall() - 2 * config.window_days * MS_PER_DAY).catch(() => {});
      await clock.sleep(MS_PER_HOUR, signal).catch(() => {});
      if (!signal.aborted) this.#publish(signal);
    }
  }

  /** Reports changes of status, and writes the files, at most every few minutes. */
  #publish(signal: AbortSignal): void {
    const { clock, log } = this.#parts;
    if (clock.now() - this.#publishedAt < PUBLISH_AT_MOST_MS) return;
    this.#publishedAt = clock.now();
    this.#publishing = this.#publishing
      .then(() => this.#publishNow(signal))
      .catch((error: unknown) => log(`not published: ${error instanceof Error ? error.message : error}`));
  }

  async #publishNow(signal: AbortSignal): Promise<void> {
    const { config, state, clock } = this.#parts;
    const certificates = this.certificates();
    if (config.publish_dir !== undefined) writeFiles(config.publish_dir, filesOf(certificates));
    for (const { provider, status, because } of certificates) {
      const before = await state.status(provider);
      if (before === status) continue;
      await state.setStatus(provider, status);
      const at = new Date(clock.wall()).toISOString();
      const text = `${before ?? 'new'} → ${status}${because.length === 0 ? '' : `: ${because.join('; ')}`}`;
      await state.addAlert({ id: `${provider}/status/${at}`, at, provider, kind: 'status', text });
      this.#parts.log(`${provider}: ${text}`);
      this.#sender?.wake(signal);
    }
  }
}
